"""Several levels of quantiles or expectiles: one model, each of whose outputs is the
model of its level alone.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood as sw
from sapwood.errors import DataError, ParameterError

LEVELS = [0.1, 0.5, 0.9]


def rows(n: int = 1500) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] + (1 + np.abs(X[:, 1])) * rng.normal(size=n)


X, Y = rows()
DATA = sw.Dataset(X, Y)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"objective": "expectile"},
        {"leaf_estimation": "newton", "subsample": 0.7},
        {"boosting": "ordered"},
        {"line_search": "tree", "grow_policy": "symmetric"},
    ],
    ids=str,
)
def test_every_output_is_the_model_of_its_level(params: dict[str, Any]) -> None:
    params = {"objective": "quantile", "n_estimators": 6, **params}
    name = f"{params['objective']}_alpha"
    together = sw.train({**params, name: LEVELS}, DATA).predict(X)
    for k, level in enumerate(LEVELS):
        np.testing.assert_array_equal(
            together[:, k], sw.train({**params, name: level}, DATA).predict(X)
        )


def test_a_model_of_levels_can_be_saved_watched_and_continued(tmp_path: Path) -> None:
    params = {
        "objective": "reg:quantileerror",
        "quantile_alpha": np.array(LEVELS),
        "n_estimators": 3,
    }
    booster = sw.train(params, DATA, valid=DATA)
    booster.save(tmp_path / "model")
    loaded = sw.load(tmp_path / "model")
    assert loaded.to_bytes() == booster.to_bytes() and loaded.fields == {
        "quantile_alpha": LEVELS
    }
    P = booster.predict(X)
    each = [
        sw.metric.pinball(Y, P[:, k], None, alpha=level)
        for k, level in enumerate(LEVELS)
    ]
    assert booster.history["valid"]["pinball"][-1] == pytest.approx(
        np.mean(each), rel=1e-15
    )
    longer = sw.train(params, DATA, init_model=booster)
    assert (
        longer.predict(X).tolist()
        == sw.train({**params, "n_estimators": 6}, DATA).predict(X).tolist()
    )
    with pytest.raises(DataError, match="init_model differs in its fields"):
        sw.train({**params, "quantile_alpha": LEVELS[::-1]}, DATA, init_model=booster)


def test_an_estimator_predicts_a_column_a_level() -> None:
    model = sw.SapwoodRegressor(
        objective="quantile", quantile_alpha=(0.1, 0.9), n_estimators=50
    ).fit(X, Y)
    below = (Y[:, None] <= model.predict(X)).mean(0)
    assert model.predict(X).shape == (len(X), 2) and below[0] < 0.2 < 0.8 < below[1]
    assert sw.SapwoodRegressor(objective="quantile", quantile_alpha=[0.5]).fit(
        X, Y
    ).predict(X).shape == (len(X),)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (
            [0.1, 1.0],
            r"quantile_alpha=\[0.1, 1.0\], in which 1.0 is too large; choose a number above 0 and below 1",
        ),
        ([], r"quantile_alpha=\[\] is not a finite number"),
        ([0.1, "a"], "in which 'a' is not a finite number"),
    ],
)
def test_levels_are_checked(levels: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sw.train({"objective": "quantile", "quantile_alpha": levels}, DATA)


def test_what_levels_do_not_go_with_is_refused() -> None:
    params = {"objective": "quantile", "quantile_alpha": LEVELS, "n_estimators": 2}
    with pytest.raises(
        DataError, match="several values takes one target; the label has 2 columns"
    ):
        sw.train(params, sw.Dataset(X, np.c_[Y, Y]))
    with pytest.raises(ParameterError, match="mae needs one prediction for each label"):
        sw.train({**params, "eval_metric": "mae"}, DATA, valid=DATA)
    with pytest.raises(
        ParameterError, match="the loss of objective 'quantile' cannot be explained"
    ):
        sw.train(params, DATA).explain(X[:5], space="loss", y=Y[:5], background=X[:3])
    with pytest.raises(ParameterError, match="not a finite number"):
        sw.train({"objective": "huber", "huber_delta": [1.0, 2.0]}, DATA)
