"""Columns that become several columns of numbers: times, text, and lists.

In: the columns of a table, and labels. Out: a plan, which a model keeps, and tables
expanded by it.

What a column of the plan becomes takes its place and name; its parts follow after all
columns of the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import dealt, ingest, text, times
from sapwood.data.categories import Coded, ColumnTypeError
from sapwood.data.lists import ListColumn, Lists
from sapwood.data.text import TextColumn, Texts
from sapwood.data.times import TimeColumn, Times
from sapwood.errors import DataError
from sapwood.reduce import Reduce

if TYPE_CHECKING:
    from sapwood.data.ingest import Columns

Floats = NDArray[np.float64]
Item = TimeColumn | TextColumn | ListColumn
Plan = tuple[Item, ...]
Own = Mapping[int, Floats]  # by column, what words say of the label of training rows


def learn(
    chunks: "Sequence[Columns]",
    wanted: Mapping[str, Any],
    names: Sequence[str],
    label: Floats | None,
    weight: Floats | None,
    reduce: Reduce | None = None,
) -> tuple[Plan, Own]:
    """Find the columns of a table in chunks that become several, and what a model must
    know of them.

    wanted: date_features, text_features, embedding_features, and categorical, the
    columns that are declared categories.
    """
    plan: list[Item] = list(times.learn(chunks, wanted["date_features"], names, reduce))
    plan += _learn_lists(chunks, wanted["embedding_features"], names, reduce)
    own: dict[int, Floats] = {}
    for j, columns in _texts(chunks, wanted, names, reduce).items():
        whole = Texts.of(text.joined(columns))
        live = np.ones(len(whole.codes), np.bool_) if weight is None else weight > 0
        item, said = text.learn(j, whole, label, live)
        plan.append(item)
        if said is not None:
            own[j] = said
    return tuple(sorted(plan, key=lambda one: one.column)), own


def learn_from(
    chunks: "Sequence[Columns]",
    wanted: Mapping[str, Any],
    names: Sequence[str],
    vectors: Mapping[str, Any],
    called: tuple[str, str],
    reduce: Reduce | None,
) -> tuple[Plan, Own]:
    """As `learn`, from labels and weights as they were given; ``called``: what errors
    call these.
    """
    label = vectors.get("label")
    weight = vectors.get("weight")
    n_rows = sum(chunk.n_rows for chunk in chunks)
    if reduce is not None or not any(isinstance(chunk.table, list) for chunk in chunks):
        label = weight = None  # no text there
    label = None if label is None else ingest.label(label, n_rows, called[0])
    return learn(
        chunks, wanted, names, label, ingest.weight(weight, n_rows, called[1]), reduce
    )


def _learn_lists(
    chunks: "Sequence[Columns]",
    wanted: Any,
    names: Sequence[str],
    reduce: Reduce | None,
) -> list[ListColumn]:
    """The columns of lists, of one length each."""
    tables: list[list[Any]] = [
        list(chunk.table) if isinstance(chunk.table, list) else [] for chunk in chunks
    ]
    lengths: dict[int, set[int]] = {}
    for table in tables:
        for j, one in enumerate(table):
            if isinstance(one, Lists):
                lengths.setdefault(j, set()).add(one.values.shape[1])
    for some in dealt.gather(
        reduce, sorted((j, n) for j, found in lengths.items() for n in found)
    ):
        for j, n in some:
            lengths.setdefault(int(j), set()).add(int(n))
    asked = (
        lengths.keys()
        if wanted == "auto"
        else {_place(one, names) for one in wanted or ()}
    )
    if odd := sorted(asked - lengths.keys()):
        raise ColumnTypeError(
            f"embedding_features names column {names[odd[0]]!r}, which has no lists."
        )
    for j, found in lengths.items():
        if j not in asked:
            raise ColumnTypeError(
                f"column {names[j]!r} has lists, and embedding_features={wanted!r} does not name it."
            )
        if len(found - {0}) != 1:
            raise ColumnTypeError(
                f"column {names[j]!r} has no list of numbers; leave it out."
                if found == {0}
                else f"column {names[j]!r} has lists of {min(found - {0})} to {max(found)} values; use one length."
            )
    return [ListColumn(j, max(found)) for j, found in sorted(lengths.items())]


def refuse_lists(columns: "Columns", names: Sequence[str]) -> None:
    """Raise where a table that streams by has lists."""
    for j, one in enumerate(columns.table if isinstance(columns.table, list) else ()):
        if isinstance(one, Lists):
            raise ColumnTypeError(
                f"column {names[j]!r} has lists, which a table that streams by may not have."
            )


def _texts(
    chunks: "Sequence[Columns]",
    wanted: Mapping[str, Any],
    names: Sequence[str],
    reduce: Reduce | None,
) -> dict[int, list[Any]]:
    """The pieces of every column of text."""
    asked = wanted["text_features"]
    if not asked or not any(isinstance(chunk.table, list) for chunk in chunks):
        asked = asked if isinstance(asked, list) else []
    tables = [chunk.as_columns() for chunk in chunks if chunk.n_rows] if asked else []
    found = {}
    for j in (
        range(len(names)) if asked == "auto" else [_place(one, names) for one in asked]
    ):
        pieces = [table[j] for table in tables]
        some = [one for one in pieces if isinstance(one, Coded)]
        if asked == "auto":
            if some and text.is_text(some):
                found[j] = pieces
        elif not some or not all(
            isinstance(value, str) for one in some for value in one.values
        ):
            raise DataError(
                f"text_features names column {names[j]!r}, which is not of text."
            )
        else:
            found[j] = pieces
    if reduce is not None and (
        of_all := {j for some in dealt.gather(reduce, sorted(found)) for j in some}
    ):
        raise DataError(
            f"column {names[min(of_all)]!r} has text, which needs all rows in one place; rows are dealt to several "
            "holders here. Set text_features=None to read it as categories."
        )
    return found


def _place(one: Any, names: Sequence[str]) -> int:
    """The position of a column by its name or position."""
    if isinstance(one, str) and one in names:
        return list(names).index(one)
    if isinstance(one, int) and 0 <= one < len(names):
        return one
    known = ", ".join(map(repr, names[:5]))
    raise DataError(
        f"text_features or embedding_features names {one!r}, which is no column; there are {known}..."
    )


def coded(plan: Plan, categories: Mapping[int, Any]) -> Mapping[int, Any]:
    """The columns that are read as categories, by position: those of categories, and of
    text.
    """
    texts = {one.column: None for one in plan if isinstance(one, TextColumn)}
    return {**categories, **texts} if texts else categories


def n_parts(plan: Plan) -> int:
    """How many columns the parts of all columns are."""
    return sum(len(one.parts) for one in plan)


def names_of(plan: Plan, names: Sequence[str]) -> tuple[str, ...]:
    """The names of the parts, ``date.month``; with more dots where a column has that
    name already.
    """
    made: list[str] = []
    taken = set(names)
    for one in plan:
        for part in one.parts:
            said = (
                f"since_{names[int(part[6:])]}" if part.startswith("since:") else part
            )
            dots = "."
            while (name := f"{names[one.column]}{dots}{said}") in taken:
                dots += "."
            taken.add(name)
            made.append(name)
    return tuple(made)


def parts_by_column(plan: Plan, names: Sequence[str]) -> dict[str, list[str]]:
    """The names of the parts of each column that has some; ``names`` are those of the
    table.
    """
    made = iter(names_of(plan, names))
    return {
        names[one.column]: [next(made) for _ in one.parts] for one in plan if one.parts
    }


def expand(
    columns: "Columns", plan: Plan, own: Own | None = None, first: int = 0
) -> "Columns":
    """A table whose columns of the plan are numbers, with the parts after all others.

    own, first: what words say of the label of training rows, and which of them is the
    first row of this table.
    """
    if not plan:
        return columns
    table = columns.as_columns()
    given = list(table)
    parts: list[Floats] = []
    for one in plan:
        if isinstance(one, TextColumn):
            said = (
                None
                if own is None or one.column not in own
                else own[one.column][first : first + columns.n_rows]
            )
            found = one.numbers(given[one.column], columns.n_rows, said)
        elif isinstance(one, ListColumn):
            found = one.numbers(given[one.column], columns.n_rows)
        else:
            found = one.numbers(given, columns.n_rows)
        table[one.column] = found[0]
        parts += found[1:]
    return replace(
        columns, table=[*table, *parts], names=None, n_columns=len(table) + len(parts)
    )


def is_expanded(columns: "Columns") -> bool:
    """Whether a table has no column of times or lists, but their parts, as numbers."""
    return not isinstance(columns.table, list) or not any(
        isinstance(one, Times | Lists) for one in columns.table
    )


def expand_all(
    chunks: "Sequence[Columns]", plan: Plan, own: Own | None
) -> "list[Columns]":
    """The chunks of a table, expanded; ``own`` has training rows of all of them."""
    first = np.cumsum([0, *(chunk.n_rows for chunk in chunks)]).tolist()
    return [
        expand(chunk, plan, own, at)
        for chunk, at in zip(chunks, first[:-1], strict=True)
    ]


def n_bins(plan: Plan, found: Sequence[int]) -> list[int]:
    """Bins of the table's columns; columns of text and of lists have others besides,
    and are not called constant.
    """
    several = {one.column for one in plan if not isinstance(one, TimeColumn)}
    return [max(2, n) if j in several else n for j, n in enumerate(found)]


def shares(plan: Plan, n_columns: int) -> Floats:
    """What belongs to each column of the table, (n_columns, n_given): its parts go to
    the column they come from.
    """
    first = n_columns - n_parts(plan)
    sources = [one.column for one in plan for _ in one.parts]
    return np.eye(first)[[*range(first), *sources]]


def kind_of(column: Any) -> str:
    """What a column has, for errors."""
    if isinstance(column, Times):
        return "times" + (f" of the zone {column.zone}" if column.zone else "")
    if isinstance(column, Lists):
        return f"lists of {column.values.shape[1]} numbers"
    return "categories" if hasattr(column, "codes") else "numbers"


def kinds_differ(
    chunks: "Sequence[Columns]",
    plan: Plan,
    categories: Mapping[int, Any],
    names: Sequence[str],
) -> list[str]:
    """Say which columns are not of the kind of training: times, text and lists, or
    not.
    """
    had = {one.column: one for one in plan}
    wrong = []
    for chunk in chunks:
        table = chunk.table if isinstance(chunk.table, list) else []
        if not had and not any(isinstance(one, Times | Lists) for one in table):
            continue
        for j, one in enumerate(chunk.as_columns()):
            item = had.get(j)
            if (item is None and isinstance(one, Times | Lists)) or (
                item is not None and not item.fits(one)
            ):
                was = (
                    item.word
                    if item is not None
                    else "categories"
                    if j in categories
                    else "numbers"
                )
                was += (
                    f" of {len(item.parts) + 1} numbers"
                    if item is not None and was == "lists"
                    else ""
                )
                now = "values that are not text" if was == "text" else kind_of(one)
                wrong.append(f"{names[j]!r} had {was} in training, and has {now} now")
    return (
        [f"Columns of X are of other types than in training: {'; '.join(wrong)}."]
        if wrong
        else []
    )


def flaw(plan: Plan, n_columns: int, categories: Mapping[int, Any]) -> str | None:
    """The rule that a plan from a file breaks, for a model of so many columns, parts
    included.
    """
    places: list[int] = [one.column for one in plan]
    # before parts are named
    if (
        sum(max(0, one.length) for one in plan if isinstance(one, ListColumn))
        > n_columns
    ):
        return "lists have no more values than there are columns"
    n_given = n_columns - n_parts(plan)
    if places != sorted(set(places)) or (
        places and not 0 <= places[0] <= places[-1] < n_given
    ):
        return "columns of times, text and lists rise, and are columns of the table"
    if set(places) & set(categories):
        return "a column of times, text or lists has no categories"
    for one in plan:
        if isinstance(one, TimeColumn):
            found = times.flaw(
                one, {other.column for other in plan if isinstance(other, TimeColumn)}
            )
        elif isinstance(one, TextColumn):
            found = one.flaw()
        else:
            found = None if one.length >= 1 else "lists have a length"
        if found:
            return found
    return None


def is_late(plan: Plan) -> bool:
    """Whether a plan has more than columns of times and parts of the calendar, which
    older versions knew.
    """
    return any(
        not isinstance(one, TimeColumn) or any(":" in part for part in one.parts)
        for one in plan
    )


def file_version(plan: Plan) -> int:
    """The version of a dataset's file with this plan; 0: it needs none."""
    return 6 if is_late(plan) else 5 if plan else 0


def encode(plan: Plan) -> list[Any]:
    """A plan as JSON has it."""
    found: list[Any] = []
    for one in plan:
        if isinstance(one, TimeColumn):
            found.append([one.column, one.zone, list(one.parts)])
        elif isinstance(one, ListColumn):
            found.append({"lists": one.column, "length": one.length})
        else:
            found.append(
                {
                    "text": one.column,
                    "words": list(one.words),
                    "n_classes": one.n_classes,
                    "power": one.power,
                    "totals": list(one.totals),
                    "table": [list(row) for row in one.table],
                }
            )
    return found


def decode(given: Any) -> Plan:
    """The plan of a file; raises ValueError where it is none. `flaw` must look at
    it.
    """
    plan: list[Item] = []
    one: Any
    for one in given if isinstance(given, list) else [None]:
        match one:
            case [int() as column, (str() | None) as zone, list() as parts] if all(
                isinstance(p, str) for p in parts
            ):
                plan.append(TimeColumn(column, zone, tuple(parts)))
            case {"lists": int() as column, "length": int() as length} if len(one) == 2:
                plan.append(ListColumn(column, length))
            case {
                "text": int() as column,
                "words": list() as words,
                "n_classes": int() as n_classes,
                "power": int() as power,
                "totals": list() as totals,
                "table": list() as table,
            } if (
                len(one) == 6
                and all(isinstance(word, str) for word in words)
                and _whole(totals)
                and all(isinstance(row, list) and row and _whole(row) for row in table)
            ):
                rows = tuple(tuple(row) for row in table)
                plan.append(
                    TextColumn(
                        column, tuple(words), n_classes, power, tuple(totals), rows
                    )
                )
            case _:
                raise ValueError(
                    "columns of times, text or lists are not as they are saved"
                )
    return tuple(plan)


def _whole(values: list[Any]) -> bool:
    return all(type(one) is int for one in values)
