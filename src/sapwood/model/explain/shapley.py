"""Why a model says what it says: exact Shapley values of every row.

In: a model, rows, and perhaps a background to compare them with. Out: what each column
adds to each score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.data import html, ingest
from sapwood.data.categories import MISSING
from sapwood.data.times import TimeColumn
from sapwood.device import Explainer, elementary, host
from sapwood.device.threads import threads
from sapwood.errors import DataError, ParameterError, suggest
from sapwood.model.explain.by_definition import enumerated
from sapwood.model.trees import Trees
from sapwood.printable import printable

if TYPE_CHECKING:
    from sapwood.model.booster import Booster

Floats = NDArray[np.float64]
# raw scores (n_rows, n_outputs) -> what is explained, in the same shape
Curve = Callable[[Floats], Floats]

SPACES = ("raw", "prediction", "probability", "loss")
WEIGHTS = ("count", "cover")
# links of several scores, and those without a slope
NOT_SEPARABLE = ("softmax", "one_vs_all", "step", "custom")
# splits above a leaf in the mean, and more of all: memory grows with them
MAX_MEAN_DEPTH = 256
FREE_STEPS = 2**22
CLOSE = 2.0**-20  # scores so close are joined by a tangent, not by a chord


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each column adds to each row's score; `values` and `base_values` together
    are the score.

    Attributes
    ----------
    values : (n_rows, n_columns) float64, or (n_rows, n_columns, n_outputs) with several outputs
        With interactions there are two axes of columns: a column's own effect on the
        diagonal, half of every interaction on both sides of it.
    base_values : (n_rows,) float64, or (n_rows, n_outputs)
        The score where no column is known.
    data : (n_rows, n_columns) float64
        The rows; categories as their ranks in the model's dictionaries, -1 where
        missing, -2 where training had none
        of it.
    feature_names : tuple of str
    output_names : tuple of str or None
        Classes or targets, where there are several outputs.
    categories : mapping of int to sequence
        The categories of each column that has them, by its position: what the ranks in
        `data` mean.
    """

    values: Floats
    base_values: Floats
    data: Floats
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...] | None = None
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def __dir__(self) -> list[str]:
        return [
            name
            for name in super().__dir__()
            if not name.startswith("_") or name.endswith("__")
        ]

    def _repr_html_(self) -> str:
        shape = " x ".join(f"{n:,}" for n in self.values.shape)
        about = [
            ("values", shape),
            ("outputs", ", ".join((self.output_names or ("one score",))[:12])),
        ]
        if not len(self):
            return html.card("sapwood.Explanation", about)
        size = np.abs(self.values).mean(
            axis=tuple(k for k in range(self.values.ndim) if k != 1)
        )
        order = np.argsort(-size, kind="stable")[:10]
        rows = [
            (self.feature_names[j], float(size[j]), f"{size[j]:.4g}") for j in order
        ]
        return html.card(
            "sapwood.Explanation",
            about,
            f"<em>mean size of effects</em>{html.bars(rows)}",
        )

    def shown(self, row: int, column: int) -> str:
        """The value of a row in a column as people read it; categories by name."""
        value = float(self.data[row, column])
        if column not in self.categories:
            return "missing" if np.isnan(value) else f"{value:.6g}"
        return (
            "missing"
            if value == MISSING
            else "new"
            if value < 0
            else str(self.categories[column][int(value)])
        )

    def contributions(self) -> Floats:
        """Values and base values in one array, (n_rows, n_columns + 1), as the
        contributions of LightGBM and XGBoost.

        With several outputs (n_rows, n_outputs, n_columns + 1).
        """
        if self.values.ndim > 2 + (self.output_names is not None):
            raise ParameterError(
                "contributions are values by column; explain without interactions to have them."
            )
        return np.concatenate(
            [np.moveaxis(self.values, 1, -1), self.base_values[..., None]], axis=-1
        )

    def to_shap(self) -> Any:
        """The same as a `shap.Explanation`, for the plots of that package (which must
        be installed).
        """
        import shap

        return shap.Explanation(
            self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=None if self.output_names is None else list(self.output_names),
        )


def explain(
    booster: Booster,
    X: Any,
    *,
    background: Any = None,
    interactions: bool = False,
    space: str = "raw",
    y: Any = None,
    by: str | None = None,
    exact: bool = False,
    internal: bool = False,
    n_jobs: int | None = None,
) -> Explanation:
    """Say what each column adds to the score of each row: exact Shapley values
    (TreeSHAP).

    What a cross or a combination of columns adds is divided among them in equal shares,
    as in CatBoost; with ``exact=True`` and a background it, too, is by the definition,
    and ``internal=True`` shows it as it is.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        As in `predict`.
    background : table, optional
        Rows to compare with (interventional values): a column that is not known has the
        value of one of them.
        Without, it follows the training rows down the tree (path-dependent values).
    interactions : bool
        Part the values into columns' own effects and those of pairs.
    space : {"raw", "prediction", "probability", "loss"}
        What is explained: raw scores, predictions (``probability`` is another word for
        these), or the loss of the labels `y`. All but raw scores need a background;
        they are raw values along the chord from each of its rows.
    y : (n_rows,) or (n_rows, n_outputs) array-like, optional
        The labels, for ``space="loss"``.
    by : {"count", "cover"}, optional
        What nodes weigh without a background: their rows, as in LightGBM and CatBoost,
        or their hessians, as in XGBoost. Rows by default, if the model has counted
        them.
    exact : bool
        Predictions, losses, crosses and combinations of columns by all sets of columns,
        for models of 12 columns at most, instead of along chords or in equal shares.
    internal : bool
        Values by `Booster.internal_names`, all columns that trees split, instead of the
        columns of the table.
    n_jobs : int, optional
        Threads; all available ones by default. Their number changes no bit.

    Returns
    -------
    Explanation
        With `values`, `base_values` and `data`, as in the `shap` package; values and
        base value of a row add up to
        its score (prediction, loss).
    """
    _check_arguments(booster, background, interactions, space, y, by, exact, internal)
    n_threads = threads(n_jobs)
    columns = booster._read(X, min_rows=0).dense()
    core = booster._explainer if by is None else explainer(booster, by)
    whole = booster._whole(columns)
    ask = _Ask(booster, core, whole, interactions, internal, n_threads)
    if background is None:
        values = ask.values(None)
        base = np.tile(_expected(booster, core), (columns.n_rows, 1))
    else:
        # read once: it may be a stream
        other = booster._whole(known := booster._read(background).dense())
        scores = booster.predict(known, raw=True, n_jobs=n_jobs).reshape(
            -1, booster.n_outputs
        )
        if space == "raw" and not exact:
            means = [
                host.exact_sum(np.ascontiguousarray(score), None) / len(score)
                for score in scores.T
            ]
            values = ask.values(other.table)
            base = np.tile(means, (columns.n_rows, 1))
        else:
            curve = _curve(booster, space, y, columns.n_rows, n_threads, exact)
            own = booster.predict(columns, raw=True, n_jobs=n_jobs).reshape(
                -1, booster.n_outputs
            )
            told = (booster, columns, other, curve, n_jobs)
            values, base = (
                enumerated(*told)
                if exact
                else _rescaled(ask, other, scores, own, curve)
            )
    single = booster.n_outputs == 1
    shown, names = (
        (whole, booster.internal_names)
        if internal
        else (columns, booster.feature_names)
    )
    return Explanation(
        np.ascontiguousarray(values[:, 0] if single else np.moveaxis(values, 1, -1)),
        base[:, 0] if single else base,
        table_of(shown),
        tuple(names),
        None if single else outputs_of(booster),
        {j: dictionary.values for j, dictionary in booster.categories.items()},
    )


def _expected(booster: Booster, core: Explainer) -> Floats:
    """The mean scores of the rows that nodes count, (n_outputs,)."""
    scores = np.zeros(booster.n_outputs) if booster.base_last else booster.base.copy()
    # in the order of the trees
    for each in core.expected().reshape(-1, booster.n_outputs):
        scores = scores + each / booster._divisor
    return scores + booster.base if booster.base_last else scores


def _check_arguments(
    booster: Booster,
    background: Any,
    interactions: bool,
    space: str,
    y: Any,
    by: str | None,
    exact: bool,
    internal: bool,
) -> None:
    """Raise if the arguments of `explain` do not go together."""
    if space not in SPACES:
        raise ParameterError(
            f"space={space!r} is unknown; {suggest(str(space), SPACES)}"
        )
    if (space == "loss") != (y is not None):
        raise ParameterError(
            "labels y are for space='loss', which needs them; give both or neither."
        )
    if space != "raw" and background is None:
        raise ParameterError(
            f"space={space!r} needs rows to compare with: background=(some training rows)."
        )
    if background is not None and by is not None:
        raise ParameterError(
            f"by={by!r} says what nodes weigh, but the background decides that; give one of the two."
        )
    if exact and (interactions or background is None):
        raise ParameterError(
            "exact=True is for values, not for interactions, against a background; give one."
        )
    if exact and internal:
        raise ParameterError(
            "exact=True is for the columns of the table, internal=True for what is made of them."
        )
    if exact and space == "raw" and booster.n_internal == booster.n_columns:
        raise ParameterError(
            "exact=True is for predictions and losses; values of raw scores are exact as they are."
        )


def explainer(booster: Booster, by: str | None = None) -> Explainer:
    """The core's explainer of the trees; nodes are weighted by `by`, by default their
    rows if the model has counts.
    """
    trees = booster.trees
    if by is None:
        by = "count" if trees.count.any() or not trees.cover.any() else "cover"
    if by not in WEIGHTS:
        raise ParameterError(f"by={by!r} is unknown; {suggest(str(by), WEIGHTS)}")
    leaf = trees.left == 0
    steps = int(trees.depth()[leaf].sum(dtype=np.int64))
    if steps > FREE_STEPS + MAX_MEAN_DEPTH * int(leaf.sum()):
        raise ParameterError(
            f"the paths to the {int(leaf.sum())} leaves of the model have {steps} splits; models with up to "
            f"{MAX_MEAN_DEPTH} in the mean, and {FREE_STEPS} more in all, are explained. Train with a smaller "
            "max_depth."
        )
    terms = () if trees.linear is None else trees.linear.terms
    arrays = (*trees.structure, getattr(trees, by), *terms)
    try:
        return booster.device.Explainer(booster.n_internal, booster.n_outputs, *arrays)
    except ValueError as cause:
        raise ParameterError(f"the model cannot be explained: {cause}.") from cause


def refuse_linear(trees: Trees, what: str) -> None:
    """Raise if the model has linear leaves, whose slopes `what` would ignore."""
    if trees.linear is not None:
        raise ParameterError(
            f"{what} knows no linear leaves, which the model has; explain, importance('shap', X) and "
            "importance('permutation', X, y) do. Or train with linear_leaves=False."
        )


EMPTY = 1e-9  # rows in a leaf that has none, for shap


def to_shap(booster: Booster) -> dict[str, Any]:
    """The model as the dictionary of arrays that `shap.TreeExplainer` takes from
    libraries it does not know.
    """
    t = booster.trees
    k = booster.n_outputs
    if t.linear is not None:
        raise ParameterError(
            "the shap package has no place for linear leaves; booster.explain(X) explains them, and its to_shap() is "
            "for the plots of the package."
        )
    if (t.set >= 0).any() or booster.zero_as_missing:
        raise ParameterError(
            "the shap package knows no categories and no zeros as missing; booster.explain does."
        )
    if len(booster.crosses):
        raise ParameterError(
            "the shap package cannot compute the crosses of the model; booster.explain does."
        )
    trees = []
    for first, last, output in zip(t.offset[:-1], t.offset[1:], t.output, strict=True):
        part = slice(first, last)
        left = np.where(t.left[part] > 0, t.left[part], -1)
        right = np.where(left > 0, left + 1, -1)
        value = np.zeros((last - first, k))
        value[:, output] = t.value[part] / booster._divisor
        trees.append(
            {
                "children_left": left,
                "children_right": right,
                "children_default": np.where(t.missing_left[part] == 1, left, right),
                "features": np.maximum(t.column[part], 0),
                # shap writes to what it is given
                "thresholds": t.threshold[part].copy(),
                "values": value,
                # shap takes no leaf without rows
                "node_sample_weight": np.maximum(t.count[part], EMPTY),
            }
        )
    base = booster.base[0] if k == 1 else booster.base
    return {
        "trees": trees,
        "base_offset": base,
        "internal_dtype": np.float64,
        "input_dtype": np.float64,
    }


def table_of(columns: ingest.Columns) -> Floats:
    """A table as one array of numbers, (n_rows, n_columns)."""
    if isinstance(columns.table, list):
        return np.stack(
            [np.asarray(column, np.float64) for column in columns.table], axis=1
        )
    return np.array(columns.table, np.float64)


def outputs_of(booster: Booster) -> tuple[str, ...]:
    """Names of outputs: the classes, or numbers."""
    names = (
        range(booster.n_outputs)
        if booster.classes is None
        else booster.classes.tolist()
    )
    return tuple(map(str, names))


def labels_of(booster: Booster, y: Any, n_rows: int) -> Floats:
    """Labels as objectives and metrics take them: classes as their indices."""
    given = np.asarray(y)
    if booster.classes is not None and given.ndim == 1:
        place = {value: index for index, value in enumerate(booster.classes.tolist())}
        try:
            given = np.array([place[value] for value in given.tolist()], np.float64)
        except KeyError as cause:
            raise DataError(
                f"y has the class {cause}, which the model does not know."
            ) from None
    return ingest.label(given, n_rows)


def place_of(names: tuple[str, ...], output: Any) -> int:
    """The index of an output: of a class by its value, or, where classes are no
    numbers, by its place.
    """
    if str(output) in names:
        return names.index(str(output))
    numbers = all(name.lstrip("-").isdigit() for name in names)
    if not numbers and isinstance(output, Integral) and 0 <= int(output) < len(names):
        return int(output)
    places = "" if numbers else f", or 0..{len(names) - 1}"
    raise ParameterError(
        f"output={output!r} does not exist; choose one of {', '.join(names)}{places}."
    )


def output_of(booster: Booster, output: Any) -> int:
    """The index of an output of a model; of one that has a single output, 0."""
    if booster.n_outputs > 1:
        return place_of(outputs_of(booster), output)
    refuse_output(output)
    return 0


def refuse_output(output: Any) -> None:
    """Raise where a user chooses an output of a model that has one."""
    if output not in (None, 0, "0"):
        raise ParameterError(
            f"output={output!r} does not exist: the model has one output. Leave it out."
        )


def why(
    booster: Booster, row: Any, *, n: int = 5, output: int | str | None = None
) -> str:
    """Say in words why one row has its score: the `n` largest reasons.

    Parameters
    ----------
    row : table of shape (1, n_columns), or one row of a table
        As in `predict`.
    n : int
        How many reasons to name.
    output : int or str, optional
        Which class or target, where there are several; the one with the highest score
        by default.

    Returns
    -------
    str
        A line for each reason, largest first.
    """
    row = booster._read(ingest.one_row(row), min_rows=0)
    told = explain(booster, row, internal=True)
    if len(told) != 1:
        raise DataError(
            f"why explains one row, not {len(told)}; choose one, X[i : i + 1], or use explain."
        )
    score = np.atleast_1d(booster.predict(row, raw=True)[0])
    if told.output_names is None:
        refuse_output(output)
        k = 0
        name = "score"
        values = told.values[0]
    else:
        k = (
            int(np.argmax(score))
            if output is None
            else place_of(told.output_names, output)
        )
        name = f"score of {told.output_names[k]}"
        values = told.values[0, :, k]
    order = np.argsort(-np.abs(values), kind="stable")
    reasons = [j for j in order[:n] if values[j] != 0]
    rest = values.sum() - values[reasons].sum()
    lines = [
        f"The {name} is {score[k]:.4g}: {np.atleast_1d(told.base_values[0])[k]:.4g} on average, and here"
    ]
    for j in reasons:
        cause = f"{told.feature_names[j]} {_shown(booster, j, told.data[0, j])}"
        lines.append(
            f"  {abs(values[j]):.4g} {'more' if values[j] > 0 else 'less'} because {cause}"
        )
    if len(reasons) < np.count_nonzero(values):
        lines.append(
            f"  {abs(rest):.4g} {'more' if rest > 0 else 'less'} for the other columns together"
        )
    return "\n".join(map(printable, lines))


def _shown(booster: Booster, column: int, value: float) -> str:
    """The value of a row in a column that trees split, as text."""
    if column in {
        one.column for one in booster.times if isinstance(one, TimeColumn)
    } and not np.isnan(value):
        return f"= {np.datetime64(int(value), 's')}".replace("T", " ")
    if column not in booster._labelled:
        return "is missing" if np.isnan(value) else f"= {value:.6g}"
    if value < 0:
        return (
            "is missing"
            if value == MISSING and column in booster.categories
            else "is new"
        )
    return f"= {booster._labelled[column].label(int(value))}"


@dataclass(frozen=True)
class _Ask:
    """A call of the core's explainer; only the background varies."""

    booster: Booster
    core: Explainer
    columns: ingest.Columns
    interactions: bool
    internal: bool
    n_threads: int

    def values(self, background: Any) -> Floats:
        """(n_rows, n_outputs, n_columns), or with a second axis of columns."""
        if background is not None and self.core.max_path_columns > 64:
            raise ParameterError(
                f"a path of the model has {self.core.max_path_columns} different columns; against a background there "
                "may be 64. Explain without one, or train with a smaller max_depth."
            )
        rest = (0, self.booster.trees.n_trees, self.n_threads)
        values = self.core.explain(self.columns.table, background, False, *rest)
        if self.interactions:
            pairs = self.core.explain(self.columns.table, background, True, *rest)
            pairs = pairs + pairs.swapaxes(-1, -2)
            diagonal = np.arange(values.shape[-1])
            # of effects near the largest numbers
            with np.errstate(over="ignore", invalid="ignore"):
                pairs[..., diagonal, diagonal] = values - pairs.sum(axis=-1)
            values = pairs
        if self.booster.n_internal > self.booster.n_columns and not self.internal:
            shares = self.booster.shares
            values = elementary.matmul(values, shares)
            if self.interactions:
                values = elementary.matmul(values.swapaxes(-1, -2), shares).swapaxes(
                    -1, -2
                )
        return values / self.booster._divisor


def _rescaled(
    ask: _Ask, other: ingest.Columns, scores: Floats, own: Floats, curve: Curve
) -> tuple[Floats, Floats]:
    """Values of curve(score): for each background row, the raw values times the slope
    of the chord.
    """
    values = np.zeros(())
    base = np.zeros(())
    for i, score in enumerate(scores):
        row = [column[i : i + 1] for column in other.as_columns()]
        apart = np.abs(own - score) >= CLOSE
        low = np.where(apart, score, own - CLOSE)
        high = np.where(apart, own, own + CLOSE)
        slope = (curve(high) - curve(low)) / (high - low)
        raw = ask.values(row)
        values = values + raw * slope.reshape(slope.shape + (1,) * (raw.ndim - 2))
        base = base + curve(np.broadcast_to(score, own.shape))
    return values / len(scores), base / len(scores)


def _curve(
    booster: Booster, space: str, y: Any, n_rows: int, n_threads: int, exact: bool
) -> Curve:
    """From raw scores to what is explained; for chords each output must depend on its
    own score alone.
    """
    if space == "raw":
        return lambda scores: scores
    if booster.link == "custom" or (booster.link in NOT_SEPARABLE and not exact):
        raise ParameterError(
            f"space={space!r} needs a link that turns each score into a prediction of its own; the model has the link "
            f"{booster.link!r}. Explain its raw scores, or few columns with exact=True."
        )
    if space != "loss":
        return booster._link(n_threads)
    about = host.objectives().get(booster.objective)
    fields = {
        name: one for name, one in booster.fields.items() if not isinstance(one, list)
    }
    if (
        about is None
        or not about["pointwise"]
        or about["adaptive"]
        or len(fields) < len(booster.fields)
    ):
        raise ParameterError(
            f"the loss of objective {booster.objective!r} cannot be explained; explain its raw scores."
        )
    label = labels_of(booster, y, n_rows).reshape(n_rows, -1)
    if label.shape[1] != booster.n_outputs:
        raise DataError(
            f"y has {label.shape[1]} columns; the model has {booster.n_outputs} outputs."
        )
    flat = np.ascontiguousarray(label.ravel())

    def loss(scores: Floats) -> Floats:
        losses, _, _ = host.evaluate(
            booster.objective, fields, np.ascontiguousarray(scores).ravel(), flat
        )
        return losses.reshape(label.shape)

    return loss
