"""A classifier and a regressor on a small table with numbers, categories and missing
values.
"""

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sapwood as sw

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="session")
def case() -> SimpleNamespace:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.uniform(20, 120, 400),
            "city": rng.choice(["Bern", "Lyon", "Oslo"], 400),
        }
    )
    X["floor"] = np.where(rng.random(400) < 0.2, np.nan, rng.integers(0, 6, 400))
    y = X["size"] * 2 + 30 * (X["city"] == "Bern") + rng.normal(0, 5, 400)
    regressor = sw.SapwoodRegressor(n_estimators=12, max_depth=3).fit(X, y)
    c = np.where(y > 140, "dear", "cheap")
    halves = [(X[:300], c[:300]), (X[300:], c[300:])]
    settings = {"n_estimators": 12, "max_depth": 3, "eval_metric": ["logloss", "auc"]}
    classifier = sw.SapwoodClassifier(**settings).fit(X[:300], c[:300], eval_set=halves)
    three = sw.SapwoodClassifier(n_estimators=4).fit(X[["size", "floor"]], X["city"])
    return SimpleNamespace(
        X=X, y=y, c=c, regressor=regressor, classifier=classifier, three=three
    )


@pytest.fixture(autouse=True)
def no_figure_is_left() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")
