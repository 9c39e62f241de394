"""Columns that a model can hardly use: constants, names of rows, free text. They are
named in one warning.

In: the columns of a training table with names, and what was learned of them. Out: a
warning, or nothing.
"""

from collections.abc import Mapping, Sequence

from sapwood.data.categories import Dictionary
from sapwood.errors import warn

MIN_ROWS = 100  # in fewer, all values of a column may differ by chance
ID_SHARE = 0.9  # of rows that have a value of their own
WORDS = 4  # in the mean, from which text is read as sentences
MAX_SHOWN = 5


def warn_of_columns(
    names: Sequence[str],
    n_bins: Sequence[int],
    categories: Mapping[int, Dictionary],
    n_rows: int,
) -> None:
    """Warn of columns that say nothing, or something new in every row.

    names, n_bins: of the columns; categories: by position.
    """
    if n_rows < MIN_ROWS:
        return
    constant = [name for name, n in zip(names, n_bins, strict=True) if n == 1]
    alone = [
        j for j, known in categories.items() if len(known.values) > ID_SHARE * n_rows
    ]
    sentences = [j for j in alone if _words(categories[j]) >= WORDS]
    found = {
        "have one value in all rows, and no split can use them": constant,
        "have a category of their own in almost every row, as identifiers do; leave them out": [
            names[j] for j in alone if j not in sentences
        ],
        "have text that is read as one category each; text_features makes columns of its words": [
            names[j] for j in sentences
        ],
    }
    said = [
        f"{_listed(some)} {what if len(some) > 1 else _of_one(what)}"
        for what, some in found.items()
        if some
    ]
    if said:
        warn(f"Some columns are of little use: {'; '.join(said)}.")


def _words(known: Dictionary) -> float:
    """Words of a category in the mean, over the first ones."""
    some = [one for one in known.values[:100] if isinstance(one, str)]
    return sum(len(one.split()) for one in some) / max(1, len(some))


def _of_one(what: str) -> str:
    """The same of one column."""
    return (
        what.replace("have ", "has ", 1)
        .replace("their own", "its own")
        .replace("them", "it")
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:MAX_SHOWN])) + (
        f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    )
