"""Quantiles that never cross, conformal intervals and prediction sets: coverage,
degenerate cases, the law.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

import datasets
import sapwood
from sapwood import SapwoodClassifier, SapwoodRegressor, metric
from sapwood.errors import DataError, ParameterError
from sapwood.metric.conformal import Calibration, _select, rank, threshold

PLAIN: dict[str, Any] = {"n_estimators": 15, "n_jobs": 2}
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def rows(n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """A table, and a target whose spread depends on it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] + np.abs(X[:, 1]) * rng.normal(size=n)


X, Y = rows(1500, 0)
NEW, TRUTH = rows(4000, 1)
CUT = SapwoodRegressor(quantiles=LEVELS, **PLAIN).fit(X, Y)


def test_quantiles_never_cross_and_cost_no_more() -> None:
    wild = np.random.default_rng(2).normal(0, 5, (200_000, 4))
    wild[::7, 1] = np.nan
    assert (np.diff(CUT.predict(wild), axis=1) >= 0).all()
    assert CUT.check_quantiles()
    loose = sapwood.train(
        {"objective": "quantile", "quantile_alpha": LEVELS, **PLAIN},
        sapwood.Dataset(X, Y),
    )
    raw = loose.predict(NEW)
    # the scores are those of separate levels
    assert (CUT.predict(NEW) == np.sort(raw, axis=1)).all()

    def cost(prediction: NDArray[Any]) -> float:
        return sum(
            metric.pinball(TRUTH, prediction[:, k], None, level)
            for k, level in enumerate(LEVELS)
        )

    assert cost(CUT.predict(NEW)) <= cost(raw)
    alone = [
        SapwoodRegressor(objective="quantile", quantile_alpha=one, **PLAIN)
        .fit(X, Y)
        .predict(NEW)
        for one in LEVELS
    ]
    assert cost(CUT.predict(NEW)) <= cost(np.array(alone).T)
    crossing = loose.check_quantiles()
    if (np.diff(raw, axis=1) < 0).any():
        assert crossing.holds is False
        assert (np.diff(loose.predict(crossing.rows), axis=1) < 0).any()


def test_levels_in_any_order_are_one_model_that_a_file_keeps() -> None:
    other = SapwoodRegressor(quantiles=LEVELS[::-1], **PLAIN).fit(X, Y)
    assert other.booster_.to_bytes() == CUT.booster_.to_bytes()
    loaded = sapwood.load(CUT.booster_.to_bytes())
    assert loaded.link == "ascending"
    assert (loaded.predict(NEW) == CUT.predict(NEW)).all()
    stages = list(CUT.staged_predict(NEW[:50]))
    assert all((np.diff(one, axis=1) >= 0).all() for one in stages)
    one = SapwoodRegressor(quantiles=[0.3], **PLAIN).fit(X, Y)
    assert one.predict(NEW).shape == (4000,)
    with pytest.raises(ParameterError, match="several levels"):
        one.check_quantiles()


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"quantiles": [0.0, 0.5]}, "quantiles"),
        ({"quantiles": [0.5, 1.0]}, "quantiles"),
        ({"quantiles": [0.5, 0.5]}, "twice"),
        ({"quantiles": []}, "list of levels"),
        ({"quantiles": [0.5], "objective": "huber"}, "leave one"),
        ({"quantiles": [0.5], "quantile_alpha": 0.4}, "give one"),
    ],
)
def test_levels_that_are_none_raise(params: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        SapwoodRegressor(**params, **PLAIN).fit(X, Y)


@pytest.mark.parametrize("conformal", ["split", "cross", "cv+"])
@pytest.mark.parametrize("quantiles", [None, [0.05, 0.95]])
def test_intervals_hold(conformal: str, quantiles: Any) -> None:
    model = SapwoodRegressor(conformal=conformal, quantiles=quantiles, **PLAIN).fit(
        X, Y
    )
    for coverage in (0.8, 0.9):
        low, high = model.interval(NEW, coverage).T
        assert abs(((low <= TRUTH) & (high >= TRUTH)).mean() - coverage) < 0.04
    assert model.predict(NEW).shape == ((4000,) if quantiles is None else (4000, 2))
    # too few rows: not cut to the largest
    assert (model.interval(X[:5], 0.9999) == [[-np.inf, np.inf]] * 5).all()


def test_calibration_on_own_rows_and_by_group() -> None:
    model = SapwoodRegressor(**PLAIN).fit(X[:700], Y[:700])
    spread = (np.abs(X[:, 1]) > 1).astype(int), (np.abs(NEW[:, 1]) > 1).astype(int)
    model.calibrate(X[700:], Y[700:], group=spread[0][700:])
    low, high = model.interval(NEW, 0.9, group=spread[1]).T
    inside = (low <= TRUTH) & (high >= TRUTH)
    for one in (0, 1):
        assert abs(inside[spread[1] == one].mean() - 0.9) < 0.05
    assert (high - low)[spread[1] == 1].mean() > (high - low)[spread[1] == 0].mean()
    unknown = model.interval(NEW, 0.9, group=np.full(4000, 7))
    assert (unknown == model.interval(NEW, 0.9)).all()
    with pytest.raises(DataError, match="group has the shape"):
        model.interval(NEW, 0.9, group=[1, 2])


def test_prediction_sets_hold() -> None:
    def classes(X: NDArray[Any], seed: int) -> NDArray[Any]:
        noise = np.random.default_rng(seed).normal(0, 0.6, len(X))
        return np.array(["low", "mid", "top"])[
            np.digitize(X[:, 0] + noise, [-0.5, 0.5])
        ]

    truth = classes(NEW, 4)
    for conformal in ("split", "cross", "cv+"):
        model = SapwoodClassifier(conformal=conformal, **PLAIN).fit(X, classes(X, 3))
        for coverage in (0.8, 0.95):
            sets = model.predict_set(NEW, coverage)
            assert sets.shape == (4000, 3)
            assert (
                abs(
                    (sets & (truth[:, None] == model.classes_)).any(1).mean() - coverage
                )
                < 0.04
            )
        assert model.predict_proba(NEW).shape == (4000, 3)
    with pytest.raises(DataError, match="does not know"):
        model.calibrate(X[:3], ["low", "mid", "other"])


def test_cross_is_the_mean_of_all_folds_and_one_width() -> None:
    model = SapwoodRegressor(conformal="cross", **PLAIN).fit(X, Y)
    other = SapwoodRegressor(conformal="cv+", **PLAIN).fit(X, Y)
    assert model.booster_.to_bytes() == other.booster_.to_bytes()
    assert len(other.fold_boosters_) == 10  # five where there are more than 2,000 rows
    width = threshold(np.concatenate(other.calibration_.scores), 0.9)
    middle = model.predict(NEW)
    assert (
        model.interval(NEW, 0.9) == np.stack([middle - width, middle + width], axis=1)
    ).all()
    with pytest.raises(ParameterError, match="no groups"):
        model.interval(NEW, 0.9, group=np.zeros(4000))


def test_what_is_missing_raises() -> None:
    model = SapwoodRegressor(**PLAIN).fit(X, Y)
    with pytest.raises(ParameterError, match="no calibration"):
        model.interval(NEW)
    with pytest.raises(ParameterError, match="coverage"):
        model.calibrate(X, Y).interval(NEW, 1.0)
    with pytest.raises(ParameterError, match="holds out rows itself"):
        SapwoodRegressor(conformal="split", **PLAIN).fit(X, Y, eval_set=(X, Y))
    with pytest.raises(ParameterError, match="estimators"):
        sapwood.train({"conformal": "split"}, sapwood.Dataset(X, Y))


def test_order_statistics() -> None:
    assert [rank(9, 0.9), rank(10, 0.9), rank(99, 0.95)] == [9, 10, 95]
    assert threshold(np.arange(8.0), 0.9) == np.inf
    assert threshold(np.arange(9.0), 0.9) == 8.0
    rng = np.random.default_rng(0)
    centres = [rng.normal(size=20) for _ in range(3)]
    scores = [rng.normal(size=n) for n in (5, 9, 1)]
    every = np.sort(
        np.concatenate(
            [c[None] + s[:, None] for c, s in zip(centres, scores, strict=True)]
        ),
        axis=0,
    )
    for at in (1, 4, 15):
        np.testing.assert_allclose(
            _select(centres, scores, at), every[at - 1], rtol=0, atol=1e-15
        )
    low, high = Calibration(tuple(scores), None).cross(centres, centres, 0.9)
    assert (low == -np.inf).all() or (low <= high).all()


def test_threads_and_chunks_change_no_byte() -> None:
    whole = CUT.booster_.to_bytes()
    for n_jobs in (1, 3, 7):
        assert (
            SapwoodRegressor(quantiles=LEVELS, **{**PLAIN, "n_jobs": n_jobs})
            .fit(X, Y)
            .booster_.to_bytes()
            == whole
        )
    for how in ("cross", "cv+"):
        one, three = (
            SapwoodRegressor(conformal=how, **PLAIN | {"n_jobs": n}).fit(
                X[:900], Y[:900]
            )
            for n in (1, 3)
        )
        assert (one.interval(NEW[:99]) == three.interval(NEW[:99])).all()


def test_quantiles_of_few_rows_and_of_weights() -> None:
    alone = SapwoodRegressor(
        quantiles=LEVELS,
        min_samples_leaf=1,
        min_child_weight=0,
        max_leaves=64,
        n_estimators=5,
    )
    found = alone.fit(X[:64], Y[:64]).predict(NEW)  # leaves of one row
    assert np.isfinite(found).all()
    assert (np.diff(found, axis=1) >= 0).all()
    assert np.isfinite(alone.fit(X[:1], Y[:1]).predict(NEW)).all()
    weight = np.ones(len(X))
    weight[:300] = 0.0
    weighted = (
        SapwoodRegressor(quantiles=LEVELS, **PLAIN).fit(X, Y, weight).predict(NEW)
    )
    np.testing.assert_allclose(
        weighted,
        SapwoodRegressor(quantiles=LEVELS, **PLAIN).fit(X[300:], Y[300:]).predict(NEW),
    )
    high = (
        SapwoodRegressor(quantiles=[0.5, 0.9], **PLAIN)
        .fit(X, Y, np.where(Y > 1, 20.0, 1.0))
        .predict(NEW)
    )
    assert (high.mean(axis=0) > CUT.predict(NEW)[:, [2, 4]].mean(axis=0)).all()


def test_calibration_refuses_what_is_no_number() -> None:
    model = SapwoodRegressor(**PLAIN).fit(X, Y)
    with pytest.raises(DataError, match="row 1 is not a number"):
        model.calibrate(X[:3], [1.0, np.nan, 2.0])
    few = model.calibrate(X[:5], Y[:5])
    assert np.isinf(few.interval(NEW, 0.9)).all()
    assert np.isfinite(few.interval(NEW, 0.8)).all()


def test_the_model_of_cv_plus_is_the_mean_of_its_folds_with_categories_too() -> None:
    """Categories are numbered by how often they occur, which is not the same in all
    folds; one is in one fold only.
    """
    rng = np.random.default_rng(8)
    code = rng.integers(0, 40, len(X))
    code[0] = 40
    frame = pd.DataFrame({"a": X[:, 0], "c": [f"v{one}" for one in code]})
    model = SapwoodRegressor(conformal="cv+", **PLAIN).fit(frame, Y + code % 7)
    mean = np.mean([one.predict(frame) for one in model.fold_boosters_], axis=0)
    np.testing.assert_allclose(model.predict(frame), mean, rtol=1e-12, atol=1e-12)
    assert np.corrcoef(model.predict(frame), Y + code % 7)[0, 1] > 0.8


def made_up(name: str, n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """A table whose target has noise of some kind."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 5))
    noise = {
        "even": lambda: rng.normal(size=n),
        "spread": lambda: np.exp(table[:, 1]) * rng.normal(size=n),
        "heavy": lambda: rng.standard_t(2, n),
        "skewed": lambda: rng.exponential(1.0, n),
        "rounded": lambda: rng.normal(size=n).round(1),
        "flat": lambda: rng.uniform(-1, 1, n),
    }[name]()
    return table, table[:, 0] + table[:, 2] * table[:, 3] + noise


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["split", "quantiles", "cross", "cv+"])
@pytest.mark.parametrize(
    "name",
    [
        "even",
        "spread",
        "heavy",
        "skewed",
        "rounded",
        "california_housing",
        "wine_quality",
        "bike_sharing",
        "protein",
        "flat",
    ],
)
def test_coverage_on_ten_tables(name: str, kind: str) -> None:
    """The mean over seeds is within 1.5 points of what was asked for; cv+ and tied
    labels may be above.
    """
    n_seeds = 5 if kind in ("cross", "cv+") else 20
    shares = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        if hasattr(datasets, name):
            extract = getattr(datasets, name)()
            order = rng.permutation(len(extract.y))
            table = extract.X[order]
            target = extract.y[order]
        else:
            table, target = made_up(name, 2400, seed)
        n = len(target) * 3 // 5
        more: dict[str, Any] = (
            {"quantiles": [0.05, 0.95]} if kind == "quantiles" else {}
        )
        model = SapwoodRegressor(
            conformal="split" if kind == "quantiles" else kind,
            n_estimators=40,
            random_state=seed,
            **more,
        ).fit(table[:n], target[:n])
        low, high = model.interval(table[n:], coverage=0.9).T
        shares.append(((low <= target[n:]) & (target[n:] <= high)).mean())
    off = np.mean(shares) - 0.9
    assert off > -0.015
    assert off < (0.05 if kind == "cv+" or name == "wine_quality" else 0.015)


@pytest.mark.nightly
def test_nineteen_levels_on_a_million_rows() -> None:
    """No row has quantiles that cross, whatever its values; the pinball loss is not
    above that of separate models.
    """
    levels = np.arange(1, 20) / 20
    model = SapwoodRegressor(quantiles=levels.tolist(), n_estimators=40).fit(X, Y)
    rng = np.random.default_rng(3)
    wild = rng.normal(0, 10 ** rng.uniform(-2, 4, (1_000_000, 1)), (1_000_000, 4))
    wild[rng.random(wild.shape) < 0.05] = np.nan
    assert (np.diff(model.predict(wild), axis=1) >= 0).all()
    assert model.check_quantiles()

    def pinball(prediction: NDArray[Any], level: float) -> float:
        over = prediction - TRUTH
        return float(np.mean(np.maximum((1 - level) * over, -level * over)))

    together = model.predict(NEW)
    alone = [
        SapwoodRegressor(objective="quantile", quantile_alpha=level, n_estimators=40)
        .fit(X, Y)
        .predict(NEW)
        for level in levels
    ]
    ours = sum(pinball(together[:, k], level) for k, level in enumerate(levels))
    theirs = sum(pinball(alone[k], level) for k, level in enumerate(levels))
    assert ours <= theirs


QUICK: dict[str, Any] = {"n_estimators": 2, "n_jobs": 1}


@pytest.mark.parametrize("conformal", ["jackknife", True, 0.2])
def test_only_ways_that_exist(conformal: Any) -> None:
    with pytest.raises(ParameterError, match=r"split, cross, cv|cross, cv.*split"):
        SapwoodRegressor(conformal=conformal, **QUICK).fit(X, Y)
    with pytest.raises(ParameterError, match="conformal is for numbers and classes"):
        sapwood.SapwoodRanker(conformal="split", **QUICK).fit(
            X, np.ones(len(Y)), group=np.arange(len(Y)) // 9
        )


def test_arguments_of_intervals_that_are_refused(tmp_path: Path) -> None:
    model = SapwoodRegressor(conformal="CV+", **QUICK).fit(X, Y)
    assert len(model.fold_boosters_) == 10  # upper case does
    for coverage in ("a", None, [0.5, 0.9], 0, 1):
        with pytest.raises(ParameterError, match="coverage="):
            model.interval(NEW, coverage)  # type: ignore[arg-type]
    for x, y, words in (
        (X, Y[:-1], "X has 1500 rows, but y has 1499"),
        (X[:0], Y[:0], "there are no rows"),
    ):
        with pytest.raises(DataError, match=words):
            model.calibrate(x, y)
    model.calibrate(X, Y, group=np.arange(len(Y)) % 2)
    with pytest.raises(DataError, match="1 is not '1'"):
        model.interval(X, group=(np.arange(len(Y)) % 2).astype(str))
    # one that it has not met
    assert np.isfinite(model.interval(X[:2], group=[None, 0])).all()
    with pytest.warns(UserWarning, match="has no calibration"):
        model.save_model(tmp_path / "model.sapwood")
    with pytest.raises(DataError, match="whole groups, and there is one"):
        SapwoodRegressor(conformal="cross", **QUICK).fit(X, Y, group=np.zeros(len(Y)))
    for ask in (
        SapwoodRegressor().check_quantiles,
        lambda: SapwoodRegressor(conformal="split").interval(X),
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_score_of_quantiles_is_minus_their_mean_loss() -> None:
    short = Y[:, None] - CUT.predict(X)
    loss = np.maximum(np.array(LEVELS) * short, (np.array(LEVELS) - 1) * short).mean()
    assert CUT.score(X, Y) == pytest.approx(-loss, rel=1e-13)
