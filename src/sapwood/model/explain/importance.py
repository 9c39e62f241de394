"""Which columns matter: by what their splits did, by what the model's answers do, by
what its errors do.

In: a model, and rows with labels where a kind needs them. Out: one number a column, or
one a pair of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood import metric as metrics
from sapwood.data import ingest
from sapwood.device import elementary, host
from sapwood.device.threads import threads
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.model.explain import shapley

if TYPE_CHECKING:
    from sapwood.model.booster import Booster

Floats = NDArray[np.float64]
Columns = Sequence[int | str]


# kind -> the measure summed over the splits on a column (None counts them), its factor,
# and whether to take the average
SPLITS: dict[str, tuple[str | None, float, bool]] = {
    "gain": ("gain", 1.0, True),
    "total_gain": ("gain", 1.0, False),
    **dict.fromkeys(["weight", "split", "frequency"], (None, 1.0, False)),
    "cover": ("cover", 1.0, True),
    "total_cover": ("cover", 1.0, False),
    "cover_rows": ("count", 1.0, True),
    "total_cover_rows": ("count", 1.0, False),
    "xgboost_gain": ("gain", 2.0, True),
    "xgboost_total_gain": ("gain", 2.0, False),
    "lightgbm_gain": ("gain", 2.0, False),
}


@dataclass(frozen=True)
class Ask:
    """The arguments of an importance, besides the model."""

    booster: Booster
    X: Any = None
    y: Any = None
    weight: Any = None
    metric: Any = None
    groups: Sequence[int | str | Columns] | None = None
    background: Any = None
    n_repeats: int = 5
    seed: int = 0
    output: int | str | None = None
    n_jobs: int | None = None

    def splits(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The trees of the chosen output, and the ids of all their nodes."""
        trees = self.booster.trees
        output = self.output
        place = None if output is None else shapley.output_of(self.booster, output)
        for tree in range(trees.n_trees):
            if place is None or trees.output[tree] == place:
                yield tree, np.arange(trees.offset[tree], trees.offset[tree + 1])


def of_splits(ask: Ask, kind: str) -> Floats:
    """Counts and sums over the splits on each column."""
    measure, factor, averaged = SPLITS[kind]
    trees = ask.booster.trees
    n = len(ask.booster.internal_names)
    nodes = np.concatenate(
        [np.empty(0, np.int64), *(nodes for _, nodes in ask.splits())]
    )
    nodes = nodes[trees.column[nodes] >= 0]
    column = trees.column[nodes]
    measured = None if measure is None else factor * getattr(trees, measure)[nodes]
    # bincount adds in the order of the nodes: the same bits everywhere
    result, times = (
        _shared(ask, np.bincount(column, by, n).astype(np.float64))
        for by in (measured, None)
    )
    return result / np.where(times > 0, times, 1.0) if averaged else result


def internal(ask: Ask) -> Floats:
    """CatBoost's: the sum over pairs of branches of c1 (v1 - m)^2 + c2 (v2 - m)^2, m
    their mean by the weights c.

    In a symmetric tree the pairs are leaves that one level parts; in others the two
    sides of each split, each with its mean value. A cross or combination of columns is
    one of its own, in the order of `Booster.internal_names`. A linear leaf stands with
    its value, the mean of its line.
    """
    trees, result = ask.booster.trees, np.zeros(len(ask.booster.internal_names))
    weight = trees.count if trees.count.any() else trees.cover
    for tree, nodes in ask.splits():
        levels = symmetric_levels(ask.booster, tree)
        if levels is None:
            value, column, left = (
                trees.value[nodes].copy(),
                trees.column[nodes],
                trees.left[nodes],
            )
            for u in range(len(nodes) - 1, -1, -1):  # children follow their parents
                if left[u]:
                    sides = slice(left[u], left[u] + 2)
                    spread, value[u] = _spread(
                        value[sides, None].T, weight[nodes[sides], None].T
                    )
                    result[column[u]] += spread
            continue
        values, weights = (
            array[nodes[-(1 << len(levels)) :]] for array in (trees.value, weight)
        )
        for level, column in enumerate(trees.column[nodes[levels]]):
            shape = 1 << level, 2, -1
            pairs = (
                np.moveaxis(array.reshape(shape), 1, 2).reshape(-1, 2)
                for array in (values, weights)
            )
            result[column] += _spread(*pairs)[0]
    return result


def interaction(ask: Ask) -> Floats:
    """CatBoost's, by two levels of a symmetric tree: |sum of values where both go the
    same way - sum of the rest|.
    """
    trees = ask.booster.trees
    n = len(ask.booster.internal_names)
    shapley.refuse_linear(trees, "importance kind 'interaction'")
    result = np.zeros((n, n))
    for tree, nodes in ask.splits():
        levels = symmetric_levels(ask.booster, tree)
        if levels is None:
            raise ParameterError(
                "importance kind 'interaction' is defined for symmetric trees only; train with "
                "grow_policy='symmetric', or see explain(X, interactions=True)."
            )
        depth = len(levels)
        values = trees.value[nodes[-(1 << depth) :]]
        leaf = np.arange(1 << depth)
        columns = trees.column[nodes[levels]]
        for i, j in combinations(range(depth), 2):
            if columns[i] != columns[j]:
                alike = (leaf >> (depth - 1 - i) & 1) == (leaf >> (depth - 1 - j) & 1)
                result[columns[i], columns[j]] += abs(
                    float(np.where(alike, -values, values).sum())
                )
    return _shared(ask, _shared(ask, result + result.T).T)


def shap(ask: Ask) -> Floats:
    """The mean absolute Shapley value of a column, over rows and outputs."""
    values = ask.booster.explain(
        ask.X, background=ask.background, n_jobs=ask.n_jobs
    ).values
    if not len(values):
        raise DataError(
            "importance kind 'shap' is a mean over rows, and X has none; give some."
        )
    values = values.reshape(*values.shape[:2], -1)
    if ask.output is not None:
        values = values[:, :, [shapley.output_of(ask.booster, ask.output)]]
    sums = [
        sum(metrics.mean(np.abs(part), None) for part in column.T)
        for column in np.moveaxis(values, 1, 0)
    ]
    return np.asarray(np.array(sums) / values.shape[2])


def loss_function_change(ask: Ask) -> Floats:
    """CatBoost's: how much worse the metric is without a column's Shapley values, which
    removes it from all trees.
    """
    judge = _Judge(ask)
    values = ask.booster.explain(ask.X, n_jobs=ask.n_jobs).values
    raw = ask.booster.predict(ask.X, raw=True, n_jobs=ask.n_jobs)
    link = ask.booster._link()
    whole = judge.badness(link(raw))
    return np.array(
        [
            judge.badness(link(raw - values[:, j])) - whole
            for j in range(ask.booster.n_columns)
        ]
    )


def permutation(ask: Ask) -> Floats:
    """How much worse the metric is, on average over repeats, if a column's (or group's)
    values are permuted.
    """
    judge = _Judge(ask)
    table = ask.booster._read(ask.X).dense().as_columns()
    whole = judge.badness(ask.booster._predict_columns(table, ask.n_jobs))
    used = set(np.flatnonzero(of_splits(ask, "weight")).tolist())
    result = []
    for index, group in enumerate(_groups(ask)):
        total = 0.0
        for repeat in range(ask.n_repeats if used.intersection(group) else 0):
            order = np.argsort(
                host.draw(ask.seed, host.PERMUTE, repeat, index, judge.n_rows),
                kind="stable",
            )
            dealt = [
                column[order] if j in group else column
                for j, column in enumerate(table)
            ]
            total += (
                judge.badness(ask.booster._predict_columns(dealt, ask.n_jobs)) - whole
            )
        result.append(total / ask.n_repeats)
    return np.array(result)


def sage(ask: Ask) -> Floats:
    """Shapley values of the game "how good is the metric if only some columns are
    known" (Covert et al. 2020).

    A column that is not known has the values of the background's rows, and predictions
    are averaged over them. Orders of columns are drawn, and each is taken forwards and
    backwards.
    """
    judge = _Judge(ask)
    table = ask.booster._read(ask.X).dense().as_columns()
    other = (
        ask.booster._read(ask.X if ask.background is None else ask.background)
        .dense()
        .as_columns()
    )
    n_other = len(other[0])
    if ask.background is None:  # a sample of the rows
        chosen = np.sort(
            np.argsort(host.draw(ask.seed, host.SAGE, 0, 0, n_other), kind="stable")[
                :32
            ]
        )
        other = [column[chosen] for column in other]
        n_other = len(chosen)
    groups = _groups(ask)
    unknown = [np.tile(column, judge.n_rows) for column in other]
    known = [np.repeat(column, n_other) for column in table]

    def badness(seen: set[int]) -> float:
        mixed = [known[j] if j in seen else unknown[j] for j in range(len(table))]
        prediction = ask.booster._predict_columns(mixed, ask.n_jobs)
        apart = prediction.reshape(judge.n_rows, n_other, *prediction.shape[1:])
        sums = apart[:, 0]
        # the metric refuses what is not finite
        with np.errstate(over="ignore", invalid="ignore"):
            # in the order of the background: the same bits on every machine
            for k in range(1, n_other):
                sums = sums + apart[:, k]
        return judge.badness(sums / n_other)

    nothing = badness(set())
    total = np.zeros(len(groups))
    for repeat in range(ask.n_repeats):
        order = np.argsort(
            host.draw(ask.seed, host.SAGE, 1, repeat, len(groups)), kind="stable"
        )
        for way in (order, order[::-1]):
            seen: set[int] = set()
            before = nothing
            for index in way:
                seen.update(groups[index])
                after = badness(seen)
                total[index] += before - after
                before = after
    return total / (2 * ask.n_repeats)


def prediction_difference(ask: Ask) -> Floats:
    """How far a column's values alone, changed in both of two rows, can shift their
    scores against their order.

    The row with the higher score may fall by as much as any value of the column makes
    it fall, the other may rise.
    """
    rows, scores, rises = _pair(ask)
    result = np.zeros(ask.booster.n_columns)
    for j in np.flatnonzero(of_splits(ask, "weight")).tolist():
        values = _telling_values(ask.booster, j)
        for row, score, up in zip(rows, scores, rises, strict=True):
            changed = np.tile(row, (len(values), 1))
            changed[:, j] = values
            moved = (
                ask.booster._predict_columns(changed.T, ask.n_jobs, raw=True) - score
            )
            result[j] += max(0.0, float(moved.max() if up else -moved.min()))
    return result


def _telling_values(booster: Booster, j: int) -> Floats:
    """Values of a column among which are those of the lowest and of the highest score,
    whatever the other columns.
    """
    trees, linear = booster.trees, booster.trees.linear
    if j in booster.categories:
        return np.arange(booster.categories[j].n_bins, dtype=np.float64)
    inside = [
        threshold
        for own in booster.combinations.sources()
        for column, threshold in own
        if column == j
    ]
    cuts = np.unique(
        [*trees.threshold[(trees.column == j) & np.isfinite(trees.threshold)], *inside]
    )
    # one between any two cuts
    values = np.append(cuts, np.nextafter(cuts[-1], np.inf) if len(cuts) else 0.0)
    if linear is None or j not in linear.linear_column:
        return values
    if not len(linear.linear_bounds):
        raise ParameterError(
            "a prediction difference has no limit where linear leaves in raw units are; train with "
            "linear_units='standard'."
        )
    low, high, _ = linear.linear_bounds.reshape(-1, 3)[j]
    # lines have their extremes at the ends
    return np.unique([*values, *np.nextafter(cuts, np.inf), low, high])


def catboost_prediction_difference(ask: Ask) -> Floats:
    """The same by CatBoost's rule for symmetric trees, which adds up one answer changed
    at a time.

    Both agree where no tree asks for a column twice.
    """
    _, _, rises = _pair(ask)
    trees = ask.booster.trees
    result = np.zeros(ask.booster.n_columns)
    shapley.refuse_linear(trees, "importance kind 'catboost_prediction_difference'")
    leaves = ask.booster.predict_leaves(ask.X)
    for up, leaf in zip(rises, leaves, strict=True):
        # by column: what crossing each of its cuts adds
        steps: dict[int, dict[tuple[bool, float], float]] = {}
        for tree, nodes in ask.splits():
            levels = symmetric_levels(ask.booster, tree)
            if levels is None or (trees.set[nodes] >= 0).any():
                raise ParameterError(
                    "importance kind 'catboost_prediction_difference' is defined for symmetric trees over numbers "
                    "only; take 'prediction_difference'."
                )
            values = trees.value[nodes[-(1 << len(levels)) :]]
            at = leaf[tree] - (len(nodes) - len(values))
            for level, node in enumerate(nodes[levels]):
                bit = 1 << (len(levels) - 1 - level)
                # whether the row is above it, and where it is
                cut = bool(at & bit), float(trees.threshold[node])
                cuts = steps.setdefault(int(trees.column[node]), {})
                cuts[cut] = cuts.get(cut, 0.0) + float(values[at ^ bit] - values[at])
        for j, cuts in steps.items():
            down = [cuts[cut] for cut in sorted(cuts, reverse=True) if cut[0]]
            rise = [cuts[cut] for cut in sorted(cuts) if not cut[0]]
            moved = np.concatenate([[0.0], np.cumsum(down), np.cumsum(rise)])
            result[j] += float(moved.max() if up else -moved.min())
    return result / ask.booster._divisor


ANSWERS: dict[str, Callable[[Ask], Floats]] = {
    "prediction_values_change": lambda ask: _shared(
        ask, internal(ask)
    ),  # columns share the parts of what is made of them
    "internal": internal,
    "interaction": interaction,
    "shap": shap,
    "loss_function_change": loss_function_change,
    "permutation": permutation,
    "sage": sage,
    "prediction_difference": prediction_difference,
    "catboost_prediction_difference": catboost_prediction_difference,
}
PEERS = {
    "PredictionValuesChange": "prediction_values_change",
    "FeatureImportance": "prediction_values_change",
    "LossFunctionChange": "loss_function_change",
    "InternalFeatureImportance": "internal",
    "Interaction": "interaction",
    "PredictionDiff": "catboost_prediction_difference",
    "SageValues": "sage",
}
READS = {  # kind -> the optional arguments it reads
    "shap": {"X", "background", "output"},
    "loss_function_change": {"X", "y", "weight", "metric"},
    "permutation": {"X", "y", "weight", "metric", "groups", "n_repeats", "seed"},
    "sage": {"X", "y", "weight", "metric", "groups", "n_repeats", "seed", "background"},
    "prediction_difference": {"X"},
    "catboost_prediction_difference": {"X"},
}


def importance(
    booster: Booster,
    kind: str = "gain",
    X: Any = None,
    y: Any = None,
    *,
    normalize: bool = False,
    percent: bool = False,
    sample_weight: Any = None,
    metric: Any = None,
    groups: Sequence[int | str | Columns] | None = None,
    background: Any = None,
    n_repeats: int = 5,
    random_state: int = 0,
    output: int | str | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """Measure how much each column matters; docs/explain.md says which kind answers
    which question.

    Parameters
    ----------
    kind : str
        By splits. ``gain``: average fall of the penalised loss over the splits on a
        column; ``cover``: average sum
        of hessians of their rows, as XGBoost counts; ``cover_rows``: average number of
        their rows, by weight. ``total_gain``, ``total_cover`` and ``total_cover_rows``:
        sums instead of averages. ``weight``, also called ``split`` or ``frequency``:
        the number of splits. ``xgboost_gain``, ``xgboost_total_gain`` and
        ``lightgbm_gain`` (a sum): the numbers of those libraries, in which a gain is
        twice the fall of the loss.

        By answers. ``prediction_values_change`` (also ``internal``) and
        ``interaction``: CatBoost's, from the trees alone. ``shap``: mean size of
        Shapley values on `X`. ``prediction_difference`` and
        ``catboost_prediction_difference``: how a column can change the order of the two
        rows of `X`.

        By errors, on `X` and `y`. ``loss_function_change``: CatBoost's, with the column
        removed from all trees; ``permutation``; ``sage``. CatBoost's own names are
        known too.
    X, y : table and labels, optional
        Rows, for the kinds that look at them; better not those of training.
    normalize : bool
        Divide by the sum over all columns.
    percent : bool
        The same, in percent.
    sample_weight : (n_rows,) array-like, optional
        Weights of the rows.
    metric : str, callable or (name, callable, higher_is_better), optional
        What is measured, as ``eval_metric`` of `sapwood.train`; that of the objective
        by default.
    groups : sequence of columns or sequences of columns, optional
        Columns (names or indices) that are permuted together; the result has one number
        a group.
    background : table, optional
        Rows to compare with, for ``shap`` and ``sage``.
    n_repeats : int
        How often columns are permuted, or orders of columns drawn.
    random_state : int
        The seed of these draws.
    output : int or str, optional
        One class or target, for the kinds that look at trees or Shapley values.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    (n_columns,) float64
        0 for a column without a split; (n_columns, n_columns) for ``interaction``.
    """
    threads(n_jobs)  # an invalid number raises, whether threads are needed or not
    ask = Ask(
        booster,
        X,
        y,
        sample_weight,
        metric,
        groups,
        background,
        n_repeats,
        random_state,
        output,
        n_jobs,
    )
    kind = PEERS.get(kind, kind)
    if kind not in SPLITS and kind not in ANSWERS:
        raise ParameterError(
            f"importance kind {kind!r} is unknown; {suggest(str(kind), [*SPLITS, *ANSWERS])}"
        )
    reads = READS.get(kind, {"output"}) | {"n_jobs", "booster"}
    for name, default in Ask.__dataclass_fields__.items():
        if name not in reads and getattr(ask, name) is not default.default:
            raise ParameterError(
                f"importance kind {kind!r} does not look at {name}; leave it out."
            )
    for name in ("X", "y"):
        if name in reads and getattr(ask, name) is None:
            raise ParameterError(
                f"this kind of importance looks at rows; give {name}=..."
            )
    if ask.n_repeats < 1:
        raise ParameterError(
            f"n_repeats={ask.n_repeats} is too small; choose 1 or more."
        )
    result = of_splits(ask, kind) if kind in SPLITS else ANSWERS[kind](ask)
    if normalize or percent:
        result = result / (result.sum() or 1.0)
    return 100.0 * result if percent else result


def symmetric_levels(booster: Booster, tree: int) -> list[int] | None:
    """The first node of each level if the tree has one split a level, laid out level by
    level; else None.
    """
    trees = booster.trees
    part = slice(trees.offset[tree], trees.offset[tree + 1])
    left = trees.left[part]
    questions = (trees.column[part], trees.threshold[part], trees.set[part])
    depth = (len(left) + 1).bit_length() - 2
    n_splits = (1 << depth) - 1
    if len(left) != 2 * n_splits + 1 or not np.array_equal(
        left[:n_splits], 2 * np.arange(n_splits) + 1
    ):
        return None
    levels = [(1 << d) - 1 for d in range(depth)]
    alike = all(
        np.unique(part[first : 2 * first + 1]).size == 1
        for first in levels
        for part in questions
    )
    return levels if alike else None


class _Judge:
    """A metric on fixed labels, with its sign chosen so that more is worse."""

    def __init__(self, ask: Ask) -> None:
        booster = ask.booster
        about = host.objectives().get(booster.objective)
        if about is None and ask.metric is None:
            raise ParameterError(
                f"objective {booster.objective!r} brings no metric; say which: metric='rmse', say."
            )
        default = about["metric"] if about else ask.metric
        link = None if booster.link == "custom" else booster.link
        self.metric = metrics.resolve(
            ask.metric, default=default, link=link, fields=booster.fields
        )[0]
        self.n_rows = booster._read(ask.X).n_rows
        self.y = shapley.labels_of(booster, ask.y, self.n_rows)
        self.weight = ingest.weight(ask.weight, self.n_rows)

    def badness(self, prediction: Floats) -> float:
        value = self.metric(self.y, prediction, self.weight)
        return -value if self.metric.higher_is_better else value


def _spread(values: Floats, weights: Floats) -> tuple[float, float]:
    """Sum of the weighted squared deviations from each pair's mean, and the last pair's
    mean; pairs (n, 2).
    """
    total = weights.sum(axis=1)
    mean = (values * weights).sum(axis=1) / np.where(total > 0, total, 1.0)
    mean = np.where(total > 0, mean, values.mean(axis=1))
    return float(((values - mean[:, None]) ** 2 * weights).sum()), float(mean[-1])


def _shared(ask: Ask, values: Floats) -> Floats:
    """Map values by internal column (first axis) to the columns of the table."""
    booster = ask.booster
    if booster.n_internal == booster.n_columns:
        return values
    by_column = np.moveaxis(values, 0, -1)
    return np.moveaxis(elementary.matmul(by_column, booster.shares), -1, 0)


def _groups(ask: Ask) -> list[set[int]]:
    """The groups of columns, by index; one group a column if none are given."""
    if ask.groups is None:
        return [{j} for j in range(ask.booster.n_columns)]
    groups = [
        [group] if isinstance(group, int | str) else group for group in ask.groups
    ]
    return [{column_of(ask.booster, one) for one in group} for group in groups]


def column_of(booster: Booster, column: int | str) -> int:
    """A column's index, from its name or index."""
    if isinstance(column, str):
        if column in booster.feature_names:
            return booster.feature_names.index(column)
        raise ParameterError(
            f"there is no column {column!r}; {suggest(column, booster.feature_names)}"
        )
    if 0 <= column < booster.n_columns:
        return int(column)
    raise ParameterError(
        f"there is no column {column}; choose 0..{booster.n_columns - 1}, or a name."
    )


def _pair(ask: Ask) -> tuple[Floats, Floats, tuple[bool, bool]]:
    """Two rows, their scores, and which must rise to change their order: the lower one;
    both if they are equal.
    """
    if len(ask.booster.crosses):
        raise ParameterError(
            "a prediction difference is for models without crosses; take 'shap' or 'permutation'."
        )
    rows = shapley.table_of(ask.booster._read(ask.X).dense())
    if len(rows) != 2 or ask.booster.n_outputs > 1:
        raise ParameterError(
            "a prediction difference is that of two rows, X of shape (2, n_columns), and of one score."
        )
    scores = ask.booster._predict_columns(rows.T, ask.n_jobs, raw=True)
    return rows, scores, (bool(scores[0] <= scores[1]), bool(scores[1] <= scores[0]))
