"""Trees for people to read: indented text, and one row a node in a data frame.

In: a model. Out: a string, or a frame of the library asked for.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sapwood.data import html
from sapwood.errors import ParameterError, suggest
from sapwood.model.combinations import Labelled
from sapwood.model.trees import Trees
from sapwood.printable import printable

if TYPE_CHECKING:
    from sapwood.model.booster import Booster

BACKENDS = ("pandas", "polars")
MAX_SHOWN = 8  # categories in a line of text
# characters of a text or of a frame, categories in the lists of a frame
MAX_TEXT = 2**28
MAX_LISTED = 2**24
OR_MISSING = ", or where a value is missing "  # of a line in raw units


def to_text(booster: "Booster", tree: int | None = None) -> str:
    """Show one tree, or all, as indented text; the branch of rows that fulfil a
    condition comes first.
    """
    n_trees = booster.trees.n_trees
    if tree is not None and not 0 <= tree < n_trees:
        raise ParameterError(
            f"tree={tree} does not exist; choose 0..{n_trees - 1}, or None for all."
        )
    which = range(n_trees) if tree is None else [tree]
    names = booster.internal_names
    known = booster._labelled
    formulas = _Lines(booster)
    parts = []
    size = 0
    for index in which:
        for line in _tree(
            booster.trees, index, booster._per_round, names, known, formulas
        ):
            line = printable(line)
            parts.append(line)
            if (size := size + len(line)) > MAX_TEXT:
                raise ParameterError(
                    f"the text has more than {MAX_TEXT} characters, as paths or names are long; show single trees, "
                    "to_text(tree=0), or use to_frame."
                )
        parts.append("")
    return "\n".join(parts)


def _tree(
    trees: Trees,
    tree: int,
    per_round: int,
    names: Sequence[str],
    categories: Mapping[int, Labelled],
    formulas: "_Lines",
) -> Iterator[str]:
    """Write one tree as lines of indented text.

    ::

        tree 0 (round 0, output 0)
          0: age <= 42.5 or missing  [gain 12.5, cover 10.0, count 10.0]
            1: value 0.25  [cover 4.0, count 4.0]
            2: city in {'Bern', 'Lyon', ... 31 in all}  [gain 2.0, cover 6.0, count 6.0]
    """
    one = trees.slice(tree, tree + 1)
    yield f"tree {tree} (round {tree // per_round}, output {one.output[0]})"
    stack = [(0, 1)]  # (node, indentation)
    while stack:
        node, indent = stack.pop()
        cover = f"cover {float(one.cover[node])!r}"
        count = f"count {float(one.count[node])!r}"
        left = int(one.left[node])
        if left == 0:
            line = formulas.formula(int(trees.offset[tree]) + node)
            line += (
                (", at the mean row " if formulas.units == "standard" else OR_MISSING)
                if line
                else ""
            )
            content = f"{line}value {float(one.value[node])!r}  [{cover}, {count}]"
        else:
            content = f"{_condition(one, node, names, categories)}  [gain {float(one.gain[node])!r}, {cover}, {count}]"
            stack += [(left + 1, indent + 1), (left, indent + 1)]
        yield f"{'  ' * indent}{node}: {content}"


def to_html(booster: "Booster") -> str:
    """The model as notebooks show it: what it is, and the columns with the largest
    gain.
    """
    gain = booster.importance("total_gain", normalize=True)
    order = [int(j) for j in np.argsort(-gain, kind="stable")[:10] if gain[j] > 0]
    about = [
        ("objective", booster.objective),
        ("rounds, trees", f"{booster.n_rounds:,}, {booster.trees.n_trees:,}"),
        (
            "columns",
            f"{booster.n_columns:,}, {len(booster.categories):,} of categories",
        ),
        ("leaves", "linear" if booster.linear else "constant"),
    ]
    if booster.classes is not None:
        about.insert(1, ("classes", ", ".join(map(str, booster.classes.tolist()[:12]))))
    rows = [(booster.feature_names[j], float(gain[j]), f"{gain[j]:.1%}") for j in order]
    return html.card(
        "sapwood.Booster",
        about,
        f"<em>share of gain</em>{html.bars(rows)}" if rows else "",
    )


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A data frame of pandas."""
    import pandas as pd

    return pd.DataFrame(columns)


def to_frame(booster: "Booster", backend: str = "pandas") -> Any:
    """Return every node as a row of a data frame.

    Parameters
    ----------
    backend : {"pandas", "polars"}
        The library to make the frame with.

    Returns
    -------
    data frame
        Columns tree, round, output, node, depth, feature, threshold, missing ("left" or
        "right"), left, right,
        value, gain, cover, count. Leaves have no feature and missing (None), no
        threshold and gain (NaN), and
        children -1; splits have no value (NaN). With columns of categories one column
        more, ``categories``: lists
        of those that go left, as text, where a split is by them and has no threshold
        (NaN); else None. Where some splits send unseen categories elsewhere than
        missing ones, one more, ``new``: their side. With
        linear leaves one more, ``linear``: their formulas; else None. In raw units,
        rows with a missing or infinite value in a formula take the value instead.
    """
    if backend not in BACKENDS:
        raise ParameterError(
            f"backend {backend!r} is unknown; {suggest(str(backend), BACKENDS)}"
        )
    try:
        library = importlib.import_module(backend)
    except ImportError:
        raise ParameterError(
            f"backend {backend!r} is not installed; install it, or choose one of {BACKENDS}."
        ) from None
    trees, names, categories = booster.trees, booster.internal_names, booster._labelled
    tree = np.repeat(np.arange(trees.n_trees), np.diff(trees.offset))
    leaf = trees.left == 0
    missing, new = (
        np.where(left, "left", "right").tolist()
        for left in (trees.missing_left & 1 == 1, trees.new_left)
    )
    by_set = (trees.set >= 0).tolist()
    lists = _lists(trees, names, categories)
    told = [side if inside else None for side, inside in zip(new, by_set, strict=True)]
    lines = _Lines(booster)
    formulas = (
        [lines.formula(node) or None for node in range(trees.n_nodes)]
        if trees.linear
        else []
    )
    return library.DataFrame(
        {
            "tree": tree,
            "round": tree // booster._per_round,
            "output": trees.output[tree],
            "node": np.arange(trees.n_nodes) - trees.offset[tree],
            "depth": trees.depth(),
            "feature": [
                None if column < 0 else names[column]
                for column in trees.column.tolist()
            ],
            "threshold": np.where(leaf | (trees.set >= 0), np.nan, trees.threshold),
            "missing": [
                None if end else to
                for end, to in zip(leaf.tolist(), missing, strict=True)
            ],
            "left": np.where(leaf, -1, trees.left),
            "right": np.where(leaf, -1, trees.left + 1),
            "value": np.where(leaf, trees.value, np.nan),
            "gain": np.where(leaf, np.nan, trees.gain),
            "cover": trees.cover,
            "count": trees.count,
            **({"categories": lists} if categories else {}),
            **({"new": told} if (trees.missing_left > 1).any() else {}),
            **({"linear": formulas} if trees.linear else {}),
        }
    )


def _lists(
    trees: Trees, names: Sequence[str], categories: Mapping[int, Labelled]
) -> list[list[str] | None]:
    """By node: the categories that go left where the split is by them; raises if a
    frame of them would be too large.
    """
    nodes = np.flatnonzero(trees.set >= 0).tolist()
    count = int(np.diff(trees.set_offset)[trees.set[nodes]].sum())
    size = int(np.append([len(name) for name in names], 0)[trees.column].sum())
    # by column and set: nodes share sets
    known: dict[tuple[int, int], tuple[list[str], int]] = {}
    found: list[list[str] | None] = [None] * trees.n_nodes
    for node in nodes if count <= MAX_LISTED else ():
        key = int(trees.column[node]), int(trees.set[node])
        if key not in known:
            labels = _labels(trees, node, categories)
            known[key] = labels, sum(map(len, labels))
        found[node], more = known[key]
        size += more
    if count > MAX_LISTED or size > MAX_TEXT:
        raise ParameterError(
            f"the frame would list {count} categories in {size} characters or more, above {MAX_LISTED} and {MAX_TEXT}; "
            "to_text shows the first of each set."
        )
    return found


class _Lines:
    """The formulas of linear leaves, by node of all trees."""

    def __init__(self, booster: "Booster") -> None:
        linear = booster.trees.linear
        self.units = ""
        self.offset: list[int] = []
        if linear is None:
            return
        self.offset, self.column, self.coef, bounds = (
            array.tolist() for array in linear.terms
        )
        # What coefficients are multiplied by: columns of a table, and crosses of them
        # in parentheses.
        names = [
            name if j < booster.n_columns else f"({name})"
            for j, name in enumerate(booster.internal_names)
        ]
        self.units = "standard" if bounds else "raw"
        self.factors = [
            f"clip({name}, {low!r}, {high!r}, missing={mean!r})"
            for name, low, high, mean in zip(
                names, bounds[::3], bounds[1::3], bounds[2::3], strict=False
            )
        ] or names

    def formula(self, node: int) -> str:
        """The terms of a leaf as a sum; empty if it has none."""
        if not self.units:
            return ""
        span = slice(*self.offset[node : node + 2])
        terms = zip(self.column[span], self.coef[span], strict=True)
        return " + ".join(
            repr(b) if c < 0 else f"{b!r} * {self.factors[c]}" for c, b in terms
        )


def _labels(
    trees: Trees,
    node: int,
    categories: Mapping[int, Labelled],
    write: Callable[[Any], str] = str,
    most: int | None = None,
) -> list[str]:
    """The categories that go left at a node, at most so many."""
    dictionary = categories[int(trees.column[node])]
    return [dictionary.label(code, write) for code in trees.codes(node)[:most].tolist()]


def _condition(
    tree: Trees, node: int, names: Sequence[str], categories: Mapping[int, Labelled]
) -> str:
    """The condition of the left branch."""
    name = names[tree.column[node]]
    threshold = float(tree.threshold[node])
    if tree.set[node] >= 0:
        labels = _labels(tree, node, categories, repr, MAX_SHOWN)
        count = len(tree.codes(node))
        none = categories[int(tree.column[node])].none
        rest = ("", none, "new", "missing, not new")[tree.missing_left[node]]
        if rest and not labels:
            return f"{name} is {rest}"
        more = [f"... {count} in all"] if count > MAX_SHOWN else []
        return f"{name} in {{{', '.join(labels + more)}}}" + (
            f" or {rest}" if rest else ""
        )
    if threshold == np.inf:
        return f"{name} is not missing"
    return f"{name} <= {threshold!r}" + (
        " or missing" if tree.missing_left[node] else ""
    )
