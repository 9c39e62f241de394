"""Does a model keep its constraints: a proof for every one, or rows that show it
broken.

In: a model. Out: a verdict for each constrained column, and one for the groups of
columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import derived
from sapwood.data.categories import UNSEEN, Dictionary
from sapwood.errors import ParameterError
from sapwood.model.trees import Trees
from sapwood.params import constraints, resolve

if TYPE_CHECKING:
    from sapwood.model.booster import Booster

Floats = NDArray[np.float64]
# An interval (low, high] or a set of category codes (UNSEEN may be one); and whether
# missing values are inside.
Side = tuple[float, float, bool] | tuple[frozenset[int], bool]
Box = dict[int, Side]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one constraint."""

    holds: bool | None  # None: neither proven nor refuted
    why: str
    # (2, n_columns) they differ in one column, and their scores have the wrong order
    rows: NDArray[Any] | None = None

    def __bool__(self) -> bool:
        return self.holds is True


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all constraints of a model; true if every one is proven."""

    monotone: Mapping[str, Verdict]
    interaction: Verdict | None
    unknown: str = ""  # why there is no verdict

    def __bool__(self) -> bool:
        return (
            not self.unknown
            and all(self.monotone.values())
            and (self.interaction is None or bool(self.interaction))
        )


def check_constraints(
    booster: "Booster",
    monotone_constraints: Any = None,
    interaction_constraints: Any = None,
) -> Verdicts:
    """Prove that the model keeps constraints, or show where it does not.

    Parameters
    ----------
    monotone_constraints, interaction_constraints : optional
        As training takes them. Without either, the constraints that the model was
        trained with.

    Returns
    -------
    Verdicts
        True if everything is proven. ``monotone``: by column, whether raw scores rise
        or fall along it (``holds``
        True, False, or None where it is neither proven nor refuted), ``why``, and where
        it is refuted two ``rows``
        that show it. ``interaction``: the same for groups of columns on the paths of
        trees, or None without such. ``unknown``: why nothing can be said, where a model
        of another library was read without its constraints.
    """
    if booster.linear:
        raise ParameterError(
            "the leaves of this model are linear, and what is proven is proven of constant ones."
        )
    given = {
        "monotone_constraints": monotone_constraints,
        "interaction_constraints": interaction_constraints,
    }
    names = booster.feature_names
    asked = {name: one for name, one in given.items() if one is not None}
    parts = derived.parts_by_column(booster.times, names[: booster.n_given])
    claims = (
        constraints.by_name(resolve(asked), names, parts) if asked else booster.params
    )
    if "monotone_constraints" not in claims:
        return Verdicts(
            {},
            None,
            "a model of another library, whose constraints are not read; give them to be checked",
        )
    groups = constraints.groups(claims.get("interaction_constraints"), names)
    signs = (claims["monotone_constraints"] or {}).items()
    verdicts = {
        name: _monotone(booster, names.index(name), sign) for name, sign in signs
    }
    return Verdicts(verdicts, _interaction(booster, groups) if groups else None)


def _monotone(booster: "Booster", column: int, sign: int) -> Verdict:
    """A sum of monotone trees is monotone; if one tree is not, the sum may still be."""
    if column in booster.categories:
        return Verdict(None, "categories have no order")
    if any(
        column == own
        for sources in booster.combinations.sources()
        for own, _ in sources
    ):
        return Verdict(None, "it is part of a combination, whose codes have no order")
    if any(column in sources for _, *sources in booster.crosses.sources()):
        return Verdict(None, "it is part of a cross, which varies with it")
    crooked = 0
    whole: list[Side] = [(-np.inf, np.inf, True)] * booster.n_numbered
    for place, dictionary in booster.categories.items():
        whole[place] = (frozenset([UNSEEN, *range(dictionary.n_bins)]), True)
    whole += [
        (frozenset(range(n)), True)
        for n in booster.combinations.n_bins(booster.n_numbered).values()
    ]
    for index in range(booster.trees.n_trees):
        pair = _crossing(booster.trees.slice(index, index + 1), column, sign, whole)
        if pair is None:
            continue
        crooked += 1
        rows = np.array(
            [_row(box, booster) for box in pair],
            object if booster.categories else np.float64,
        )
        cuts = np.unique(booster.trees.threshold[booster.trees.column == column])
        cuts = cuts[np.isfinite(cuts)]
        grid = np.repeat(rows[:1], len(cuts) + 1, axis=0)
        grid[:, column] = np.append(cuts, _above(cuts[-1]))
        scores = booster.predict(grid, raw=True).reshape(len(grid), -1)
        wrong = np.argwhere(sign * np.diff(scores, axis=0) < 0)
        if len(wrong):
            at, output = wrong[0]
            low, high = map(float, scores[at : at + 2, output])
            why = f"from {grid[at, column]:.17g} to {grid[at + 1, column]:.17g} the score goes from {low!r} to {high!r}"
            return Verdict(False, why, grid[at : at + 2])
    if crooked:
        return Verdict(
            None,
            f"{crooked} trees are not monotone by themselves; no rows were found that show it in all",
        )
    return Verdict(
        True,
        f"each of the {booster.trees.n_trees} trees is monotone, and so is their sum",
    )


def _crossing(
    tree: Trees, column: int, sign: int, whole: Sequence[Side]
) -> tuple[Box, Box] | None:
    """Two boxes whose rows differ in one column only and whose leaves have the wrong
    order, or None.
    """
    least = tree.value.copy()
    most = tree.value.copy()
    splits = np.flatnonzero(tree.left).tolist()
    for node in splits[::-1]:
        sides = [tree.left[node], tree.left[node] + 1]
        least[node], most[node] = least[sides].min(), most[sides].max()
    boxes: dict[int, Box] = {0: {}}
    for node in splits:  # a symmetric tree has nodes that no row can reach
        c = int(tree.column[node])
        for child, side in (
            ()
            if node not in boxes
            else _children(tree, node, boxes[node].get(c, whole[c]))
        ):
            boxes[child] = boxes[node] | {c: side}
    for node in splits:
        left, right = int(tree.left[node]), int(tree.left[node]) + 1
        if tree.column[node] != column or left not in boxes or right not in boxes:
            continue
        rest = {c: side for c, side in boxes[node].items() if c != column}
        # The column itself is one of numbers.
        pairs: list[tuple[int, Any, int, Any, Box]] = [
            (left, boxes[left][column], right, boxes[right][column], rest)
        ]
        # both below one node: the others' columns are shared, their own is left of it
        # and right of it
        while pairs:
            a, here, b, there, shared = pairs.pop()
            fine = most[a] <= least[b] if sign > 0 else least[a] >= most[b]
            if fine or here[0] >= here[1] or there[0] >= there[1]:
                continue
            if not tree.left[a] and not tree.left[b]:
                return shared | {column: here}, shared | {column: there}
            inner = a if tree.left[a] else b
            own = here if inner == a else there
            c = int(tree.column[inner])
            for child, side in _children(
                tree, inner, own if c == column else shared.get(c, whole[c])
            ):
                rest = shared if c == column else shared | {c: side}
                if inner == a:
                    pairs.append((child, side if c == column else here, b, there, rest))
                else:
                    pairs.append((a, here, child, side if c == column else there, rest))
    return None


def _children(tree: Trees, node: int, side: Side) -> Iterator[tuple[int, Side]]:
    """The children of a split that rows can reach, and their part of its column."""
    left = int(tree.left[node])
    to_left = bool(tree.missing_left[node])
    if len(side) == 2:
        codes, missing = side
        chosen = frozenset(
            [*tree.codes(node).tolist(), *([UNSEEN] if tree.new_left[node] else [])]
        )
        for child, some in ((left, codes & chosen), (left + 1, codes - chosen)):
            inside = missing and to_left == (child == left)
            if some or inside:
                yield child, (some, inside)
        return
    low, high, missing = side
    at = float(tree.threshold[node])
    for child, part in (
        (left, (low, min(high, at), missing and to_left)),
        (left + 1, (max(low, at), high, missing and not to_left)),
    ):
        if part[0] < part[1] or part[2]:
            yield child, part


def _row(box: Box, booster: "Booster") -> list[Any]:
    """A row inside a box, but for crosses and combinations; None is a missing
    category.
    """
    row: list[Any] = [
        None if column in booster.categories else 0.0
        for column in range(booster.n_columns)
    ]
    for column, side in box.items():
        if column >= booster.n_columns:
            continue
        if len(side) == 2:
            row[column] = (
                _category(booster.categories[column], side[0]) if side[0] else None
            )
        else:
            low, high, _ = side
            row[column] = (
                np.nan
                if low >= high
                else high
                if high < np.inf
                else 0.0
                if low == -np.inf
                else _above(low)
            )
    return row


def _category(known: Dictionary, codes: frozenset[int]) -> Any:
    """A value with one of these codes; an unseen value if UNSEEN is the only one."""
    met = codes - {UNSEEN}
    kind = type(known.values[0])
    return (
        known.values[min(met)]
        if met
        else next(new for new in map(kind, count()) if new not in known.place)
    )


def _above(cut: float) -> float:
    """A value above a cut."""
    return float(min(cut + max(1.0, abs(cut)), np.finfo(np.float64).max))


def _interaction(booster: "Booster", groups: Sequence[Sequence[int]]) -> Verdict:
    """Whether the columns of every path are in one group."""
    # the table columns of each internal one
    own = [set(np.flatnonzero(share).tolist()) for share in booster.shares]
    of = [
        {g for g, group in enumerate(groups) if columns <= set(group)}
        for columns in own
    ]
    trees = booster.trees
    for index in range(trees.n_trees):
        tree = trees.slice(index, index + 1)
        alive: dict[int, set[int]] = {0: set(range(len(groups)))}
        path: dict[int, set[int]] = {0: set()}
        for node in np.flatnonzero(tree.left).tolist():
            column = int(tree.column[node])
            for child in (int(tree.left[node]), int(tree.left[node]) + 1):
                alive[child], path[child] = (
                    alive[node] & of[column],
                    path[node] | own[column],
                )
            if not alive[child]:
                mixed = ", ".join(booster.feature_names[c] for c in sorted(path[child]))
                return Verdict(
                    False, f"tree {index} has {mixed} on one path, which no group holds"
                )
    return Verdict(
        True, f"every path of the {trees.n_trees} trees has columns of one group"
    )
