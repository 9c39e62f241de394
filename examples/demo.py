"""Sapwood in a minute, on real data that ships with scikit-learn.

In: nothing. Out: test losses beside those of a constant, the most important columns, and a check of the promise.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import train_test_split

import sapwood


def demo(title: str, data: Any, model: Any) -> None:
    """Fit on three quarters of the rows, test on the others, and check that every number of threads gives one model."""
    X, X_test, y, y_test = train_test_split(data.data, data.target, random_state=0)
    print(f"\n{title}: {len(y)} training rows, {len(y_test)} test rows, {X.shape[1]} columns")
    model.fit(X, y)

    mean = np.full(len(y_test), y.mean())
    if isinstance(model, sapwood.SapwoodClassifier):
        name, ours, constant = "log loss", log_loss(y_test, model.predict_proba(X_test)), log_loss(y_test, mean)
    else:
        name, ours = "root mean squared error", root_mean_squared_error(y_test, model.predict(X_test))
        constant = root_mean_squared_error(y_test, mean)
    print(f"  test {name}: {ours:.4f}; a constant has {constant:.4f}; {model.n_iter_} rounds")

    gain = model.booster_.importance("total_gain")
    top = np.argsort(-gain, kind="stable")[:3]
    print("  most important columns:", ", ".join(f"{data.feature_names[j]} ({gain[j] / gain.sum():.0%})" for j in top))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.sapwood"
        model.booster_.save(path)
        same = np.array_equal(sapwood.load(path).predict(X_test), model.booster_.predict(X_test))
        print(
            f"  saved in {path.stat().st_size:,} bytes; loaded, it predicts {'the same bits' if same else 'OTHER BITS'}"
        )

    prints = {}
    for label, n_jobs in (("1 thread", 1), ("2 threads", 2), ("all threads", -1)):
        again = clone(model).set_params(n_jobs=n_jobs, verbose=0)
        prints[label] = again.fit(X, y).booster_.fingerprint()
        print(f"  {label:12}{prints[label]}")
    if not same or len(set(prints.values())) > 1:
        raise SystemExit("the promise is broken: these fingerprints should be equal")


if __name__ == "__main__":
    # Early stopping holds out a tenth of the training rows; the test rows are used once.
    settings = {
        "n_estimators": 500,
        "learning_rate": 0.05,
        "max_leaves": 8,
        "early_stopping_rounds": 25,
        "verbose": True,
    }
    demo("Breast cancer", load_breast_cancer(), sapwood.SapwoodClassifier(**settings))
    demo("Diabetes", load_diabetes(), sapwood.SapwoodRegressor(**settings))
    print("\nThe same data, parameters and seed gave the same model, byte for byte, on every number of threads.")
