"""Constraints on splits: as users give them, by name or position, and as the core reads
them.

In: resolved constraints, and the names of columns. Out: constraints by name, or by
column index.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import ParameterError, suggest
from sapwood.params.recipes import RECIPES

N = TypeVar("N", int, float)
Group = list[int]  # columns that may occur on the same path


def by_name(
    params: Mapping[str, Any],
    names: Sequence[str],
    parts: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Constraints by the names of columns, as a model keeps them.

    params: mapping; resolved parameters.
    names: sequence of str; the columns, in order.
    parts: mapping, optional; names of the parts of columns that became several (dates,
    text, lists). What is said of
      such a column is said of its parts; it has no direction.
    Returns dict: `monotone_constraints` {name: -1 or 1}, `interaction_constraints`
    (groups of names, or a word),
      `forced_splits`, `feature_weights` and `first_use_penalties` by name; None where
      there are none. `category_encoding` and `statistics` as they are, or by name.
    """
    groups = params["interaction_constraints"]
    parts = parts or {}
    if isinstance(groups, list):
        place = _places(names)
        columns = [
            sorted({_column(one, place, "interaction_constraints") for one in group})
            for group in groups
        ]
        groups = [[names[column] for column in group] for group in columns]
        groups = [
            list(
                dict.fromkeys(
                    [*group, *(x for one in group for x in parts.get(one, ()))]
                )
            )
            for group in groups
        ]
    directions = _numbers(params, "monotone_constraints", names, 0, parts)
    for one in directions or ():
        if one in parts:
            raise ParameterError(
                f"monotone_constraints names {one!r}, which became several columns ({one!r}, {parts[one][0]!r}, ...); "
                "these have no common direction. Leave it out, or give the column as a number."
            )
    forced = params["forced_splits"]
    return {
        "monotone_constraints": directions,
        "feature_weights": _spread(
            _numbers(params, "feature_weights", names, 1, parts), parts
        ),
        "first_use_penalties": _spread(
            _numbers(params, "first_use_penalties", names, 0, parts), parts
        ),
        "interaction_constraints": groups,
        "forced_splits": None if forced is None else _named(forced, names),
        **{
            what: _of_columns(params[what], names, what)
            for what in ("category_encoding", "statistics")
        },
    }


def encodings(params: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The encoding of every column, if it is categorical: partition, onehot, ordered or
    both.
    """
    given = params["category_encoding"]
    usual = RECIPES.get(params["recipe"], {}).get("category_encoding", "partition")
    words = (
        [given.get(name) for name in names]
        if isinstance(given, Mapping)
        else [given] * len(names)
    )
    return [usual if word is None else word for word in words]


def numbers(given: Mapping[str, N] | None, names: Sequence[str], default: N) -> list[N]:
    """The number of every column, or an empty list if all have the default; `given` is
    by name.
    """
    return [given.get(name, default) for name in names] if given else []


def groups(
    interaction: str | Sequence[Sequence[str]] | None, names: Sequence[str]
) -> list[Group]:
    """Groups of columns that may occur on the same path, each column in at least one;
    empty if all may.
    """
    if interaction is None:
        return []
    if interaction == "pairwise":
        return [list(pair) for pair in combinations(range(len(names)), 2)] or [[0]]
    place = _places(names)
    found = (
        []
        if isinstance(interaction, str)
        else [[place[name] for name in group] for group in interaction]
    )
    alone = set(range(len(names))) - {column for group in found for column in group}
    return found + [[column] for column in sorted(alone)]


def forced(
    splits: Mapping[str, Any] | None,
    names: Sequence[str],
    cuts: Sequence[NDArray[np.float64]],
) -> list[list[int]]:
    """Forced splits as rows (column, bin, index of the left split, index of the right
    split); -1 means no split.
    """
    rows: list[list[int]] = []

    def add(split: Mapping[str, Any] | None) -> int:
        if split is None:
            return -1
        column = names.index(split["feature"])
        # codes up to it go left
        bin = int(np.searchsorted(cuts[column], split["threshold"], side="left"))
        if bin == len(cuts[column]):
            raise ParameterError(
                f"forced_splits separates no rows: {split['feature']!r} has no cut at {split['threshold']:g} or above."
            )
        place = len(rows)
        rows.append([column, bin, -1, -1])
        rows[place][2:] = add(split.get("left")), add(split.get("right"))
        return place

    add(splits)
    return rows


def _spread(
    given: dict[str, Any] | None, parts: Mapping[str, Sequence[str]]
) -> dict[str, Any] | None:
    """Numbers by name, where parts of a column have its number unless they have their
    own.
    """
    if given is None:
        return None
    return {
        part: number for name, number in given.items() for part in parts.get(name, ())
    } | given


def _numbers(
    params: Mapping[str, Any],
    what: str,
    names: Sequence[str],
    default: float,
    parts: Mapping[str, Sequence[str]],
) -> dict[str, Any] | None:
    """A parameter that has a number for every column, by name; columns with the default
    are left out.

    A list has a number for each column of the table; it may have more, for the parts.
    """
    given = params[what]
    if isinstance(given, list):
        of_table = len(names) - sum(map(len, parts.values()))
        if len(given) not in (of_table, len(names)):
            raise ParameterError(
                f"{what} has {len(given)} {'directions' if what.startswith('mono') else 'numbers'}, the data "
                f"{of_table} columns; give one for each, or a dict of those that are not {default}."
            )
        given = dict(enumerate(given))
    place = _places(names)
    found = {
        _column(column, place, what): number for column, number in (given or {}).items()
    }
    return {
        names[column]: found[column]
        for column in sorted(found)
        if found[column] != default
    } or None


def _of_columns(given: Any, names: Sequence[str], what: str) -> Any:
    """A parameter that is one value for all columns, or a dict, whose keys become
    names.
    """
    if not isinstance(given, Mapping):
        return given
    place = _places(names)
    return {
        names[_column(column, place, what)]: value for column, value in given.items()
    }


def _places(names: Sequence[str]) -> dict[str, int]:
    """The position of every column, by name."""
    return {name: column for column, name in enumerate(names)}


def _column(given: Any, place: Mapping[str, int], what: str) -> int:
    """The position of a column given by name or position."""
    if isinstance(given, str):
        if given not in place:
            raise ParameterError(
                f"{what} names the column {given!r}, which is unknown; {suggest(given, place)}"
            )
        return place[given]
    if not 0 <= given < len(place):
        raise ParameterError(
            f"{what} names column {given}; the data has columns 0..{len(place) - 1}."
        )
    return int(given)


def _named(split: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Forced splits with names for their columns."""
    below = {
        side: _named(split[side], names)
        for side in ("left", "right")
        if split.get(side) is not None
    }
    return {
        "feature": names[_column(split["feature"], _places(names), "forced_splits")],
        **below,
    } | {"threshold": split["threshold"]}


def paths(
    split: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterable[tuple[str, ...]]:
    """The columns on every path of forced splits."""
    path = (*above, split["feature"])
    yield path
    for side in ("left", "right"):
        if side in split:
            yield from paths(split[side], path)
