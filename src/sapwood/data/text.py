"""Columns of free text: how long it is, frequent words, and what its words say of the
label.

In: a column of text as categories, and labels. Out: columns of numbers; words and
counts, a model keeps.

Words are runs of letters and digits in lower case. The number of words takes the name
and the place of the column. Its parts follow the table: ``review.characters``,
``review.word:good`` (whether the word occurs), and of the label ``review.class:1`` (log
odds of naive Bayes) or ``review.target`` (a mean over words). Words are hashed for
these, and training rows have them from the labels of other rows only: those of the
other folds.
"""

import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data.categories import Coded
from sapwood.device import elementary, host

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
WORD = re.compile(r"\w+")
BUCKETS = 4096  # that words are hashed to
MAX_WORDS = 64  # that have a column of their own
# of rows that have such a word
MIN_ROWS = 3
MIN_SHARE = 0.01
MAX_SHARE = 0.95
MAX_CLASSES = 20  # labels 0, 1, ... up to so many are classes
N_FOLDS = 5
FOLD_DRAW = 7
PRIOR = 1.0  # added to the rows of a word in each class
SHRINK = 10.0  # rows of the mean that each word's mean has besides its own
# from which a column is text by itself: rows, distinct, words in each
AUTO_ROWS = 100
AUTO_SHARE = 0.5
AUTO_WORDS = 4


@dataclass(frozen=True)
class TextColumn:
    """What a model knows of a column of text."""

    column: int
    words: tuple[str, ...]  # that have a column of their own, the most frequent first
    n_classes: int  # of the label; 0: it is a number, or there is none
    power: int  # of 2: the unit of sums of a label that is a number
    # rows of each class; or rows and the sum of labels; empty: no label
    totals: tuple[int, ...]
    # of each bucket that occurs: itself, and what `totals` has, of its rows
    table: tuple[tuple[int, ...], ...]

    word = "text"

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the columns after the number of words."""
        labels = (
            ["class:1"]
            if self.n_classes == 2
            else [f"class:{k}" for k in range(self.n_classes)]
        )
        labels = labels if self.n_classes else ["target"] * bool(self.totals)
        return ("characters", *(f"word:{one}" for one in self.words), *labels)

    def fits(self, column: Any) -> bool:
        """Whether a column of a table is text; one without a value is."""
        if isinstance(column, Coded):
            return all(isinstance(one, str) for one in column.values)
        return (
            isinstance(column, np.ndarray)
            and column.dtype.kind == "f"
            and bool(np.isnan(column).all())
        )

    def numbers(
        self, column: Any, n_rows: int, own: Floats | None = None
    ) -> list[Floats]:
        """The columns of a column of text; ``own``: (n_rows, n) what words say of the
        label, of training rows.
        """
        if not isinstance(column, Coded):
            column = Coded(np.full(n_rows, -1), [])
        texts = Texts.of(column)
        found = [
            texts.n_words,
            texts.n_characters,
            *(texts.has(one) for one in self.words),
        ]
        if self.totals:
            said = (
                own
                if own is not None
                else texts.said(self.counts, np.array(self.totals, np.int64), self)
            )
            missing = column.codes < 0
            found += [np.where(missing, np.nan, one) for one in said.T]
        return found

    @cached_property
    def counts(self) -> Ints:
        """(BUCKETS, n) what `totals` has, by bucket."""
        found = np.zeros((BUCKETS, len(self.totals)), np.int64)
        for bucket, *own in self.table:
            found[bucket] = own
        return found

    def flaw(self) -> str | None:
        """The rule that a column from a file breaks."""
        width = self.n_classes or (2 if self.totals else 0)
        good = len(self.totals) == width and (
            self.n_classes == 0 or 2 <= self.n_classes <= MAX_CLASSES
        )
        good = good and all(
            len(row) == width + 1 and 0 <= row[0] < BUCKETS for row in self.table
        )
        good = good and all(
            abs(one) < 1 << 62 for row in (self.totals, *self.table) for one in row
        )
        good = good and (
            self.n_classes == 0
            or all(one >= 0 for row in (self.totals, *self.table) for one in row)
        )
        good = (
            good
            and (self.n_classes > 0 or all(row[-2] >= 0 for row in self.table))
            and abs(self.power) < 2000
        )
        return (
            None
            if good and len(set(self.words)) == len(self.words)
            else "columns of text are as they are saved"
        )


@dataclass(frozen=True)
class Texts:
    """The words of a column of text: of each different text, in one list."""

    codes: NDArray[Any]  # (n_rows) places among texts, -1 for missing
    words: list[list[str]]  # of each text, all of them
    characters: list[int]
    first: Ints  # (n_texts + 1) where the buckets of each text begin
    buckets: Ints  # the different buckets of each text, rising

    @classmethod
    def of(cls, column: Coded) -> "Texts":
        """Read every different text once."""
        known: dict[str, int] = {}
        words = []
        own = []
        characters = []
        for text in column.values:
            listed = WORD.findall(str(text).lower())
            words.append(listed)
            characters.append(len(str(text)))
            own.append(sorted({_bucket(one, known) for one in set(listed)}))
        first = np.cumsum([0, *map(len, own)]).astype(np.int64)
        return cls(
            np.asarray(column.codes),
            words,
            characters,
            first,
            np.array([b for some in own for b in some], np.int64),
        )

    @property
    def n_words(self) -> Floats:
        """Words of every row."""
        return self._by_row([float(len(one)) for one in self.words])

    @property
    def n_characters(self) -> Floats:
        """Characters of every row."""
        return self._by_row([float(one) for one in self.characters])

    def has(self, word: str) -> Floats:
        """Whether every row has a word."""
        return self._by_row([float(word in one) for one in self.sets])

    @cached_property
    def sets(self) -> list[set[str]]:
        """The different words of each text."""
        return [set(one) for one in self.words]

    def _by_row(self, values: Sequence[float]) -> Floats:
        """Values of texts as those of rows; NaN where a row has none."""
        found: Floats = np.append(np.asarray(values, np.float64), np.nan)[self.codes]
        return found

    def tokens(self, rows: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Rows and buckets of all different words of some rows, in the order of
        rows.
        """
        places = np.flatnonzero(rows & (self.codes >= 0))
        sizes = (
            np.diff(self.first)[self.codes[places]]
            if len(places)
            else np.zeros(0, np.int64)
        )
        row = np.repeat(places, sizes)
        start = np.repeat(
            self.first[self.codes[places]] - (np.cumsum(sizes) - sizes), sizes
        )
        return row, self.buckets[start + np.arange(len(row))] if len(row) else np.zeros(
            0, np.int64
        )

    def said(
        self,
        counts: Ints,
        totals: Ints,
        about: TextColumn,
        rows: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """(n_rows, n) what the words of rows say of the label, by counts of other
        rows.
        """
        n = len(self.codes)
        chosen = np.ones(n, np.bool_) if rows is None else rows
        row, bucket = self.tokens(chosen)
        if about.n_classes:
            score = _log_odds(counts, totals)
            found = [
                np.bincount(row, score[bucket, k], n) for k in range(score.shape[1])
            ]
            return np.column_stack(found[1:] if about.n_classes == 2 else found)
        size, sums = counts.T.astype(np.float64)
        mean = float(totals[1]) / max(1.0, float(totals[0]))
        gap = (sums - size * mean) / (size + SHRINK)
        in_row = np.bincount(row, minlength=n)
        found_one = mean + np.bincount(row, gap[bucket], n) / np.maximum(in_row, 1)
        return np.ldexp(found_one, about.power)[:, None]


def learn(
    column: int, texts: Texts, label: Floats | None, live: NDArray[np.bool_]
) -> tuple[TextColumn, Floats | None]:
    """What a model is to know of a column of text, and (n_rows, n) what words say of
    the label, cross-fitted.
    """
    rows = np.flatnonzero(live & (texts.codes >= 0))
    weight = (
        np.bincount(texts.codes[rows], minlength=len(texts.words))
        if len(rows)
        else np.zeros(len(texts.words), int)
    )
    frequent: Counter[str] = Counter()
    for some, n in zip(texts.sets, weight.tolist(), strict=True):
        for one in some if n else ():
            frequent[one] += n
    low = max(MIN_ROWS, MIN_SHARE * len(rows))
    high = MAX_SHARE * len(rows)
    order = sorted((-n, one) for one, n in frequent.items() if low <= n <= high)
    words = tuple(one for _, one in order[:MAX_WORDS])
    if label is None or label.ndim != 1 or not len(rows):
        return TextColumn(column, words, 0, 0, (), ()), None
    n_classes = _classes(label[live])
    power = 0
    if n_classes:
        each = np.eye(n_classes, dtype=np.int64)[label.astype(np.int64)]
    else:
        top = float(np.abs(label[live]).max(initial=0.0))
        power = int(np.frexp(top)[1]) - 60 + len(label).bit_length() if top > 0 else 0
        whole = np.rint(np.ldexp(np.where(live, label, 0.0), -power)).astype(np.int64)
        each = np.column_stack([np.ones(len(label), np.int64), whole])
    empty = TextColumn(column, words, n_classes, power, tuple([0] * each.shape[1]), ())
    counts, totals = _counted(texts, each, live)
    own = np.zeros((len(label), 1 if n_classes in (0, 2) else n_classes))
    fold = (
        host.draw(0, host.FOLDS, FOLD_DRAW, 0, len(label)) % np.uint64(N_FOLDS)
    ).astype(np.int64)
    for which in range(N_FOLDS):
        here = fold == which
        less, fewer = _counted(texts, each, live & here)
        own[here] = texts.said(counts - less, totals - fewer, empty, here)[here]
    kept = np.flatnonzero((counts != 0).sum(axis=1))
    table = tuple((int(b), *map(int, counts[b])) for b in kept)
    return TextColumn(
        column, words, n_classes, power, tuple(map(int, totals)), table
    ), own


def is_text(pieces: Sequence[Coded]) -> bool:
    """Whether a column in pieces reads as free text."""
    return reads_as_text(
        {value for one in pieces for value in one.values},
        sum(len(one.codes) for one in pieces),
    )


def reads_as_text(values: Collection[Any], n_rows: int) -> bool:
    """Whether the different values of a column are free text: there are many, and they
    have several words.
    """
    if (
        n_rows < AUTO_ROWS
        or len(values) <= AUTO_SHARE * n_rows
        or not all(isinstance(one, str) for one in values)
    ):
        return False
    return sum(len(WORD.findall(one)) for one in values) >= AUTO_WORDS * len(values)


def joined(chunks: Iterable[Any]) -> Coded:
    """The columns of several chunks as one; what is no category is missing."""
    codes: list[NDArray[Any]] = []
    values: list[str] = []
    for one in chunks:
        if isinstance(one, Coded):
            codes.append(
                np.where(one.codes < 0, -1, one.codes.astype(np.int64) + len(values))
            )
            values += [str(value) for value in one.values]
        else:
            codes.append(np.full(len(one), -1, np.int64))
    return Coded(np.concatenate(codes), values)


def _bucket(word: str, known: dict[str, int]) -> int:
    """The bucket of a word."""
    found = known.get(word)
    if found is None:
        found = known[word] = (
            zlib.crc32(word.encode("utf-8", "surrogatepass")) % BUCKETS
        )
    return found


def _classes(label: Floats) -> int:
    """How many classes labels are; 0 where they are numbers."""
    values = np.unique(label)
    return (
        len(values)
        if 2 <= len(values) <= MAX_CLASSES
        and np.array_equal(values, np.arange(len(values)))
        else 0
    )


def _counted(texts: Texts, each: Ints, rows: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Sums of integers of rows, by bucket and in all."""
    row, bucket = texts.tokens(rows)
    counts = np.zeros((BUCKETS, each.shape[1]), np.int64)
    np.add.at(counts, bucket, each[row])
    return counts, each[rows & (texts.codes >= 0)].sum(axis=0)


def _log_odds(counts: Ints, totals: Ints) -> Floats:
    """(BUCKETS, n_classes) log odds of a bucket in a class against the others; 0 where
    it has no row.
    """
    own = counts + PRIOR
    other = counts.sum(axis=1, keepdims=True) - counts + PRIOR
    base = totals + 2.0 * PRIOR
    rest = totals.sum() - totals + 2.0 * PRIOR
    score = elementary.log((own / base) / (other / rest))
    return np.where(counts.sum(axis=1, keepdims=True) > 0, score, 0.0)
