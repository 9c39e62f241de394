"""Cross-validation: the same numbers as training each fold by hand."""

from typing import Any

import numpy as np
import pytest

from sapwood import Dataset, cv, train
from sapwood.boost import splits
from sapwood.boost.round.callback import Round
from sapwood.errors import ParameterError

rng = np.random.default_rng(2)
X = rng.standard_normal((120, 2)).round(1)
Y = X[:, 0] * X[:, 1] + 0.2 * rng.standard_normal(120)
DATA = Dataset(X, Y)


def test_means_and_deviations_are_those_of_the_folds() -> None:
    got = cv(
        {"n_estimators": 4, "eval_metric": ["rmse", "mae"], "seed": 9}, DATA, n_folds=3
    )
    fold = splits.folds(9, 3, 120)
    rmse = []
    for which in range(3):
        rows, rest = (
            Dataset(X[part], Y[part], reference=DATA)
            for part in (fold != which, fold == which)
        )
        rmse.append(
            train({"n_estimators": 4, "seed": 9}, rows, valid=rest).history["valid"][
                "rmse"
            ]
        )
    assert list(got) == ["rmse_mean", "rmse_std", "mae_mean", "mae_std"]
    assert got["rmse_mean"] == pytest.approx(np.mean(rmse, axis=0), rel=1e-14)
    assert got["rmse_std"] == pytest.approx(np.std(rmse, axis=0), rel=1e-12)


def test_early_stopping_watches_the_mean() -> None:
    params: dict[str, Any] = {"n_estimators": 200, "eta": 0.5}
    stopped = cv({**params, "early_stopping_rounds": 3}, DATA)["rmse_mean"]
    whole = cv({**params, "n_estimators": len(stopped) + 3}, DATA)["rmse_mean"]
    assert len(stopped) == np.argmin(whole) + 1
    assert (stopped == whole[: len(stopped)]).all()


def test_callbacks_see_the_means() -> None:
    seen: list[Round] = []

    def stop(view: Round) -> bool:
        seen.append(view)
        return view.index == 2

    got = cv({"n_estimators": 10}, DATA, callbacks=[stop])
    assert len(got["rmse_mean"]) == 3
    assert [view.measured["cv"]["rmse"] for view in seen] == list(got["rmse_mean"])
    assert seen[-1].booster is None and seen[-1].history == {
        "cv": {"rmse": tuple(got["rmse_mean"])}
    }


def test_classes_that_only_one_fold_has() -> None:
    label = np.zeros(120)
    label[:2] = [1, 2]
    got = cv({"objective": "softmax", "n_estimators": 2}, Dataset(X, label))
    assert np.isfinite(got["multi_logloss_mean"]).all()


def test_bad_folds() -> None:
    with pytest.raises(ParameterError, match="n_folds=1"):
        cv({}, DATA, n_folds=1)
