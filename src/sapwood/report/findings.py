"""What the model does on the rows: loss by round, errors by segment, importances,
single rows.

In: a model, rows, labels. Out: figures for the page; samples bound the time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import metric as metrics
from sapwood.data.ingest import Columns
from sapwood.device import elementary
from sapwood.metric.curves import Z, standard_error
from sapwood.model.booster import Booster
from sapwood.params.types import MAX_SCORE
from sapwood.report.scores import metrics_of
from sapwood.report.spread import quantiles

Floats = NDArray[np.float64]
MAX_POINTS = 60
MAX_CURVE_ROWS = 20_000
MAX_SHAP_ROWS = 500
MAX_PERMUTED_ROWS = 3000
MAX_PERMUTED = 15
N_SAMPLES = 12
N_SEGMENT_COLUMNS = 12
MAX_CATEGORIES = 8


def some(columns: Columns, rows: NDArray[Any]) -> Columns:
    """Some rows of a table that was read."""
    parts = [
        np.ascontiguousarray(np.asarray(column)[rows])
        for column in columns.as_columns()
    ]
    return Columns(parts, None, len(parts[0]), len(parts))


def spaced(n: int, most: int) -> NDArray[np.int64]:
    """At most so many of `n` rows, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def measure_of(booster: Booster, name: str) -> metrics.Metric:
    """A metric by name, for this model."""
    link = None if booster.link == "custom" else booster.link
    return metrics.resolve(name, default=name, link=link, fields=booster.fields)[0]


def curve(
    booster: Booster, rows: Columns, label: Floats
) -> tuple[list[int], list[float], str]:
    """The model's own metric as rounds are added: rounds, values, its name."""
    kept = spaced(rows.n_rows, MAX_CURVE_ROWS)
    part = some(rows, kept)
    y = label[kept]
    one = measure_of(booster, metrics_of(booster)[0])
    ends = np.unique(
        np.linspace(0, booster.n_rounds, MAX_POINTS + 1).astype(int)
    ).tolist()
    values = []
    link = booster._link()
    scores = np.tile(booster.base, (part.n_rows, 1))
    for first, last in zip([0, *ends[:-1]], ends, strict=True):
        # linear leaves reach far beyond what was trained on
        is_far = np.abs(scores).max(initial=0.0) > MAX_SCORE
        if booster.averaged or booster.base_last or is_far:
            shaped = booster.predict(part, raw=True, rounds=last)
        else:
            shaped = booster.predict(
                part, raw=True, rounds=(first, last), init_score=scores
            )
            scores = shaped.reshape(part.n_rows, -1)
        values.append(one(y, link(shaped.copy()), None))
    return ends, values, one.name


@dataclass(frozen=True)
class Segment:
    """Rows with something in common, and the mean loss of these."""

    column: str
    value: str
    n_rows: int
    loss: float
    low: float
    high: float
    excess: float  # in standard errors, over the loss of all rows


def losses(booster: Booster, label: Floats, prediction: Floats) -> tuple[Floats, str]:
    """A loss of every row, and its name: log loss of classes, absolute error of
    numbers.
    """
    if booster.link in metrics.BINARY and prediction.ndim == 1:
        p = np.where(label == 1, prediction, 1 - prediction)
        return -elementary.log(np.maximum(p, 1e-15)), "log loss"
    if booster.link in metrics.CLASSES:
        p = prediction[np.arange(len(label)), label.astype(np.int64)]
        return -elementary.log(np.maximum(p, 1e-15)), "log loss"
    error = np.abs(
        prediction - label.reshape(prediction.shape)
        if label.size == prediction.size
        else np.zeros(1)
    )
    return (error if error.ndim == 1 else error.mean(axis=1)), "absolute error"


def segments(
    booster: Booster, rows: Columns, loss: Floats, order: NDArray[Any]
) -> list[Segment]:
    """Segments of the most important columns, those with the largest excess of loss
    first.
    """
    whole = float(loss.mean())
    found = []
    table = rows.as_columns()
    for j in order[:N_SEGMENT_COLUMNS]:
        values = np.asarray(table[j], np.float64)
        for text, mask in _parts(booster, int(j), values):
            n = int(mask.sum())
            if n < 20 or n > 0.97 * len(loss):
                continue
            mean = float(loss[mask].mean())
            error = standard_error(loss[mask])
            excess = (mean - whole) / error if error else 0.0
            low = mean - Z * error
            high = mean + Z * error
            found.append(
                Segment(booster.feature_names[j], text, n, mean, low, high, excess)
            )
    return sorted(found, key=lambda one: -one.excess)


def _parts(booster: Booster, j: int, values: Floats) -> Any:
    """Texts and rows of the segments of a column."""
    if j in booster.categories:
        codes = values.astype(np.int64)
        count = np.bincount(codes[codes >= 0], minlength=1)
        for code in np.argsort(-count, kind="stable")[:MAX_CATEGORIES]:
            yield (
                str(booster.categories[j].values[code])
                if code < len(booster.categories[j].values)
                else "",
                codes == code,
            )
        yield "missing", codes == -1
        return
    there = values[np.isfinite(values)]
    if len(np.unique(there)) < 2:
        return
    edges = np.unique(quantiles(there, [0, 0.25, 0.5, 0.75, 1]))
    for k, (low, high) in enumerate(pairwise(edges)):
        inside = (values >= low if k == 0 else values > low) & (values <= high)
        yield f"{low:.4g} to {high:.4g}", inside
    yield "missing", np.isnan(values)


def importances(booster: Booster, rows: Columns, y: Any) -> dict[str, Floats]:
    """Importances of several kinds, each on a sample; a kind that the model does not
    have is left out.
    """
    shap, permuted = (
        spaced(rows.n_rows, MAX_SHAP_ROWS),
        spaced(rows.n_rows, MAX_PERMUTED_ROWS),
    )
    label, gain = np.asarray(y), booster.importance("total_gain", percent=True)

    def permutation() -> Floats:
        """Of the columns with the largest gain; the others have 0."""
        order = np.argsort(-gain, kind="stable")[:MAX_PERMUTED]
        result = np.zeros(len(gain))
        groups = [int(j) for j in order]
        result[order] = booster.importance(
            "permutation",
            some(rows, permuted),
            label[permuted],
            n_repeats=2,
            groups=groups,
        )
        return result

    kinds: dict[str, Callable[[], Floats]] = {
        "permutation": permutation,
        "shap": lambda: booster.importance("shap", some(rows, shap)),
        "total_gain": lambda: gain,
    }
    found = {}
    for kind, work in kinds.items():
        try:
            found[kind] = work()
        except ValueError:
            continue
    return found


def samples(label: Floats, prediction: Floats, loss: Floats) -> list[tuple[int, str]]:
    """Rows worth a look, with the reason: the extremes, the largest errors, and some in
    between.
    """
    score = prediction if prediction.ndim == 1 else prediction.max(axis=1)
    order = np.argsort(score, kind="stable")
    wrong = np.argsort(-loss, kind="stable")
    chosen: dict[int, str] = {}
    for row, why in (
        (order[-1], "highest prediction"),
        (order[0], "lowest prediction"),
        (wrong[0], "largest error"),
        (wrong[min(1, len(wrong) - 1)], "second largest error"),
        (wrong[min(2, len(wrong) - 1)], "third largest error"),
        (order[len(order) // 2], "median prediction"),
        (wrong[-1], "smallest error"),
    ):
        chosen.setdefault(int(row), why)
    for row in spaced(len(score), N_SAMPLES):
        if len(chosen) < N_SAMPLES:
            chosen.setdefault(int(row), "one of the others")
    return list(chosen.items())
