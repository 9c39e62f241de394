"""What the rows are like, and what about them should make a reader careful.

In: columns as the model reads them, labels, perhaps the training rows. Out: a summary
of every column, and warnings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary
from sapwood.metric import auc
from sapwood.model.booster import Booster
from sapwood.report.spread import histogram, quantiles

Floats = NDArray[np.float64]
N_BARS = 12
# Above these a warning is given.
MAX_MISSING = 0.5
MAX_DUPLICATES = 0.01
DRIFT = 0.25
LEAK = 0.97


@dataclass(frozen=True)
class Column:
    """One column of the rows."""

    name: str
    kind: str  # "number" or "categories"
    missing: float  # share
    unseen: float  # share of categories that training has not seen
    distinct: int
    text: str  # the middle and the ends, or the most frequent categories
    counts: tuple[float, ...]  # of a small histogram
    drift: float | None  # population stability index against the training rows


@dataclass(frozen=True)
class Facts:
    """All columns, and warnings in words."""

    n_rows: int
    columns: tuple[Column, ...]
    warnings: tuple[str, ...]
    duplicates: int


def facts(booster: Booster, rows: Any, label: Floats, train: Any = None) -> Facts:
    """Look at the rows (and at those of training), as the model reads them."""
    own = [np.asarray(column, np.float64) for column in rows.as_columns()]
    other = (
        None
        if train is None
        else [np.asarray(column, np.float64) for column in train.as_columns()]
    )
    columns = tuple(
        _column(booster, j, own[j], None if other is None else other[j])
        for j in range(booster.n_columns)
    )
    keys = _keys(own)
    duplicates = len(keys) - len(np.unique(keys))
    warnings = list(_of_columns(columns, len(label)))
    if duplicates > MAX_DUPLICATES * len(label):
        warnings.append(
            f"{duplicates:,} of {len(label):,} rows ({duplicates / len(label):.1%}) repeat another row."
        )
    if other is not None:
        both = int(np.isin(keys, _keys(other)).sum())
        if both > MAX_DUPLICATES * len(label):
            warnings.append(
                f"{both:,} rows ({both / len(label):.1%}) also occur in the training rows: scores on them say little."
            )
        for one in columns:
            if one.drift is not None and one.drift > DRIFT:
                warnings.append(
                    f"{one.name} differs between training and these rows (stability index {one.drift:.2f})."
                )
    warnings += [
        text
        for j, values in enumerate(own)
        if (text := _leak(booster, j, values, label))
    ]
    return Facts(len(label), columns, tuple(warnings), duplicates)


def _column(booster: Booster, j: int, values: Floats, other: Floats | None) -> Column:
    name = booster.feature_names[j]
    if j in booster.categories:
        known = booster.categories[j].values
        codes = values.astype(np.int64)
        count = np.bincount(codes[codes >= 0], minlength=1)
        order = np.argsort(-count, kind="stable")[:3]
        text = ", ".join(
            f"{known[k]} {count[k] / max(1, len(codes)):.0%}"
            for k in order
            if count[k] and k < len(known)
        )
        shown = tuple(sorted(count[count > 0].tolist(), reverse=True)[:N_BARS])
        drift = None if other is None else _stability(codes, other.astype(np.int64))
        missing = float((codes == -1).mean())
        unseen = float((codes < -1).mean())
        return Column(
            name,
            "categories",
            missing,
            unseen,
            int((count > 0).sum()),
            text,
            shown,
            drift,
        )
    there = values[np.isfinite(values)]
    missing = float(np.isnan(values).mean()) if len(values) else 0.0
    if not len(there):
        return Column(name, "number", missing, 0.0, 0, "no value", (), None)
    low, first, middle, last, high = quantiles(there, [0, 0.01, 0.5, 0.99, 1])
    ends = np.array([first, last])
    # almost all values are one
    ends = ends if ends[1] > ends[0] else np.array([low, high])
    bars = histogram(np.clip(there, *ends), N_BARS)[0]
    drift = None
    if other is not None and np.isfinite(other).any():
        edges = np.unique(
            quantiles(other[np.isfinite(other)], np.linspace(0, 1, 11)[1:-1])
        )
        drift = _stability(_bins(values, edges), _bins(other, edges))
    text = f"{low:.4g} … {middle:.4g} … {high:.4g}"
    return Column(
        name,
        "number",
        missing,
        0.0,
        len(np.unique(there)),
        text,
        tuple(map(float, bars)),
        drift,
    )


def _bins(values: Floats, edges: Floats) -> NDArray[np.int64]:
    return np.where(np.isnan(values), -1, np.searchsorted(edges, values)).astype(
        np.int64
    )


def _stability(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """The population stability index of two columns of codes; 0 if their shares are the
    same.
    """
    low = min(one.min(initial=0), other.min(initial=0))
    n = int(max(one.max(initial=0), other.max(initial=0)) - low) + 1
    p, q = (
        np.bincount(codes - low, minlength=n) / max(1, len(codes))
        for codes in (one, other)
    )
    kept = (p + q) > 0
    p, q = (
        np.maximum(part[kept], 0.5 / max(len(one), len(other), 1)) for part in (p, q)
    )
    return float(((p - q) * elementary.log(p / q)).sum())


def _keys(columns: Sequence[Floats]) -> NDArray[np.uint64]:
    """A number for every row: equal for equal rows."""
    keys = np.zeros(len(columns[0]) if columns else 0, np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            bits = np.where(np.isnan(column), np.float64(-0.5), column + 0.0).view(
                np.uint64
            )
            keys = (keys ^ bits) * np.uint64(0x9E3779B97F4A7C15)
            keys ^= keys >> np.uint64(29)
    return keys


def _of_columns(columns: Sequence[Column], n_rows: int) -> Any:
    """Warnings about single columns."""
    for one in columns:
        if one.distinct <= 1:
            yield f"{one.name} has the same value in all rows, or none."
        elif (
            one.kind == "categories"
            and one.distinct > 0.9 * n_rows * (1 - one.missing)
            and n_rows > 20
        ):
            yield f"{one.name} has almost as many categories as rows: an id, which says nothing of new rows?"
        if MAX_MISSING < one.missing < 1:
            yield f"{one.name} is missing in {one.missing:.0%} of the rows."
        if one.unseen > 0.05:
            yield f"{one.name} has categories that training has not seen, in {one.unseen:.0%} of the rows."


def _leak(booster: Booster, j: int, values: Floats, label: Floats) -> str:
    """A warning where one column alone almost gives the target away."""
    if label.ndim != 1 or len(label) < 50:
        return ""
    if j in booster.categories:
        place = np.maximum(values, -1).astype(np.int64) + 1
    else:
        there = values[np.isfinite(values)]
        if len(there) < 50:
            return ""
        edges = np.unique(
            quantiles(there, np.linspace(0, 1, min(64, len(there) // 10) + 1)[1:-1])
        )
        place = _bins(values, edges) + 1
    count = np.bincount(place)
    if (count > 0).sum() > 0.3 * len(label):
        return ""  # an id would give everything away
    name = booster.feature_names[j]
    mean = np.bincount(place, label) / np.maximum(1, count)
    if booster.n_outputs == 1 and len(np.unique(label)) == 2:
        found = auc((label == label.max()).astype(np.float64), mean[place], None)
        return (
            f"{name} alone tells the classes apart (AUC {found:.3f}): is it known before the target?"
            if found > LEAK
            else ""
        )
    if booster.n_outputs > 1:
        return ""
    spread = float(label.var())
    r2 = 1 - float(((label - mean[place]) ** 2).mean()) / spread if spread else 0.0
    return (
        f"{name} alone explains {r2:.1%} of the target's variance: is it known before the target?"
        if r2 > LEAK
        else ""
    )
