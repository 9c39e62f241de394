"""Target statistics: the reference bit for bit, no leak of a row's own label, bytes
over threads.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cover import examples
from sapwood.data import target_statistics as ts
from sapwood.data.categories import MISSING, UNSEEN
from sapwood.errors import DataError, ParameterError
from spec.reference import target_statistics as reference

Floats = NDArray[np.float64]
KINDS = ["borders", "buckets", "mean"]
WEIGHTS = ["none", "whole", "zeros", "real"]


def rows(
    seed: int, n: int, n_codes: int, classes: int | None
) -> tuple[NDArray[np.int32], Floats, Floats]:
    rng = np.random.default_rng(seed)
    code = rng.integers(-1, n_codes, n).astype(np.int32)
    y = (
        rng.normal(size=n)
        if classes is None
        else rng.integers(0, classes, n).astype(np.float64)
    )
    borders = (
        np.array([-0.5, 0.1, 0.9]) if classes is None else np.arange(classes - 1) + 0.5
    )
    return code, y, borders


def weight_of(kind: str, n: int) -> Floats | None:
    rng = np.random.default_rng(5)
    whole = rng.integers(0, 4, n).astype(np.float64)
    return {
        "none": None,
        "whole": whole + 1,
        "zeros": whole,
        "real": whole * rng.random(n),
    }[kind]


@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("classes", [2, 4, None])
@pytest.mark.parametrize("kind", KINDS)
def test_reference(kind: str, classes: int | None, weights: str) -> None:
    code, y, borders = rows(1, 300, 7, classes)
    weight = weight_of(weights, 300)
    target = ts.Target(y, borders, weight)
    order = ts.permutation(3, 1, 300, weight)
    np.testing.assert_array_equal(order, reference.order(3, 1, weight, 300))
    statistic = ts.Statistic(kind, (0.0, 0.5, 1.0))
    (found,) = ts.ordered([code], [7], target, [statistic], order, 1)
    expected = [
        reference.statistic(code, y, kind, prior, borders, weight, order)
        for prior in statistic.priors
    ]
    np.testing.assert_array_equal(found, np.stack(expected, axis=1).reshape(-1, 300))
    # as if every row came after all
    after = ts.table(code, 7, target, [statistic])(code)
    expected = [
        reference.statistic(
            np.r_[code, code],
            np.r_[y, y],
            kind,
            prior,
            borders,
            np.r_[np.ones(300) if weight is None else weight, np.zeros(300)],
            order,
        )
        for prior in statistic.priors
    ]
    np.testing.assert_array_equal(
        after, np.stack(expected, axis=1).reshape(-1, 600)[:, 300:]
    )


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", [*KINDS, "counter"])
def test_bins_are_those_of_the_values(kind: str, weights: str) -> None:
    """Of unseen categories, too, and of cuts that are values."""
    code, y, borders = rows(2, 1500, 9, 3)
    weight = weight_of(weights, 1500)
    if weight is not None:
        code[np.flatnonzero(weight == 0)[:20]] = UNSEEN
    target = ts.Target(y, borders, weight)
    order = ts.permutation(3, 1, 1500, weight)
    statistic = ts.Statistic(kind, (0.0, 0.5))
    codes = [code, code % 4]
    sizes = [9, 4]
    values = list(ts.ordered(codes, sizes, target, [statistic], order, 2))
    cuts = [[np.unique(one)[::7] for one in own] for own in values]
    for n_threads in (1, 3):
        found = ts.ordered_bins(codes, sizes, target, statistic, order, cuts, n_threads)
        for bins, own, theirs in zip(found, values, cuts, strict=True):
            wanted = [
                np.searchsorted(cut, one) for cut, one in zip(theirs, own, strict=True)
            ]
            np.testing.assert_array_equal(bins, wanted)


def test_by_hand() -> None:
    """The formula of the notes: (countInClass + prior) / (totalCount + 1)."""
    code = np.array([0, 1, 0, 0, -1], np.int32)
    y = np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    target = ts.Target(y, np.array([0.5]))
    order = ts.permutation(0, 0, 5, has_time=True)
    (found,) = ts.ordered(
        [code], [2], target, [ts.Statistic("borders", (0.5,))], order, 1
    )
    np.testing.assert_array_equal(found, [[0.5, 0.5, 1.5 / 2, 1.5 / 3, 0.5]])
    both = (ts.Statistic("borders", (0.5,)), ts.Statistic("counter", (0.0, 1.0)))
    table = ts.table(code, 2, target, both)
    new = table(np.array([0, 1, MISSING, UNSEEN], np.int32))
    np.testing.assert_array_equal(new[0], [2.5 / 4, 0.5 / 2, 1.5 / 2, 0.5])
    np.testing.assert_array_equal(
        new[1:], [[3 / 4, 1 / 4, 1 / 4, 0], [4 / 4, 2 / 4, 2 / 4, 1 / 4]]
    )


@settings(max_examples=examples(60))
@given(
    st.integers(0, 10**6),
    st.sampled_from(KINDS),
    st.sampled_from(WEIGHTS),
    st.integers(0, 119),
    st.booleans(),
)
def test_no_label_reaches_its_own_row(
    seed: int, kind: str, weights: str, row: int, has_time: bool
) -> None:
    code, y, borders = rows(seed, 120, 3, None)
    y[:2] = -9.0, 9.0  # the span of labels stays what it is, as borders do
    values = []
    for label in (y[row], -y[row] / 2):
        changed = y.copy()
        changed[row] = label if row > 1 else y[row]
        target = ts.Target(changed, borders, weight_of(weights, 120))
        target.span = -9.0, 9.0
        order = ts.permutation(seed, 0, 120, weight_of(weights, 120), has_time)
        (found,) = ts.ordered(
            [code], [3], target, [ts.Statistic(kind, (0.25,))], order, 1
        )
        values.append(found[:, row])
    np.testing.assert_array_equal(*values)


def test_a_later_row_does_see_it() -> None:
    """The property above is no accident: values of later rows change with the label."""
    code, y, borders = rows(2, 50, 1, 2)
    order = np.arange(50, dtype=np.int32)
    values = []
    for first in (0.0, 1.0):
        target = ts.Target(np.r_[first, y[1:]], borders)
        (found,) = ts.ordered([code], [1], target, [ts.Statistic()], order, 1)
        values.append(found[0])
    assert ((values[0] != values[1]) == (np.arange(50) > 0) & (code == code[0])).all()


@pytest.mark.parametrize("n", [1, 2, 500, 40_000])
def test_threads_and_order(n: int) -> None:
    codes = [rows(column, n, 5 + 900 * column, 3)[0] for column in range(4)]
    _, y, borders = rows(9, n, 3, 3)
    target = ts.Target(y, borders)
    order = ts.permutation(7, 2, n)
    np.testing.assert_array_equal(order, reference.order(7, 2, None, n))
    sizes = [5 + 900 * column for column in range(4)]
    kinds = (ts.Statistic("borders", (0.0, 0.5, 1.0)), ts.Statistic("counter", (0.0,)))
    first: list[Any] = []
    for n_threads in (1, 2, 3, 7):
        found = list(ts.ordered(codes, sizes, target, kinds, order, n_threads))
        first = first or found
        for one, other in zip(first, found, strict=True):
            assert one.shape == (2 * 3 + 1, n)
            np.testing.assert_array_equal(one, other)


def test_rows_of_weight_0_are_new_rows() -> None:
    code, y, borders = rows(4, 200, 5, 2)
    weight = (np.arange(200) % 3 > 0).astype(np.float64)
    target = ts.Target(y, borders, weight)
    statistics = (ts.Statistic("borders", (0.5,)), ts.Statistic("counter", (0.5,)))
    (found,) = ts.ordered(
        [code], [5], target, statistics, ts.permutation(0, 0, 200, weight), 1
    )
    table = ts.table(code, 5, target, statistics)
    np.testing.assert_array_equal(found[:, weight == 0], table(code)[:, weight == 0])
    kept = weight > 0
    alone = ts.table(code[kept], 5, ts.Target(y[kept], borders), statistics)
    np.testing.assert_array_equal(table.values(), alone.values())


def test_whole_weights_are_repeated_rows_to_new_ones() -> None:
    code, y, borders = rows(6, 90, 4, None)
    times = np.arange(90) % 3
    statistics = tuple(ts.Statistic(kind, (0.1,)) for kind in ts.KINDS)
    target = ts.Target(y, borders, times.astype(np.float64))
    repeated = ts.Target(np.repeat(y, times), borders)
    np.testing.assert_array_equal(
        ts.table(code, 4, target, statistics).values(),
        ts.table(np.repeat(code, times), 4, repeated, statistics).values(),
    )


def test_label_borders_are_cuts() -> None:
    y = np.arange(1000.0)
    np.testing.assert_array_equal(ts.label_borders(y, 1), [499.5])
    np.testing.assert_array_equal(ts.label_borders(np.array([3.0, 1.0, 1.0]), 5), [2.0])


def test_refuses() -> None:
    with pytest.raises(ParameterError, match="did you mean 'borders'"):
        ts.Statistic("border")
    with pytest.raises(ParameterError, match="from 0 to 1"):
        ts.Statistic("mean", (2.0,))
    with pytest.raises(DataError, match="finite labels"):
        ts.Target(np.array([np.nan]), np.empty(0))
    target = ts.Target(np.zeros(3), np.empty(0))
    with pytest.raises(ValueError, match="below n_codes"):
        list(
            ts.ordered(
                [np.array([0, 1, 5], np.int32)],
                [3],
                target,
                [ts.Statistic("mean")],
                np.arange(3, dtype=np.int32),
                1,
            )
        )
