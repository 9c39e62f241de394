"""Sapwood on two real tables, with nothing set: how good it is, what it chose, and that
threads change nothing.

In: two tables beside this file (README.md says what they are). Out: some twenty lines,
and two reports in build/demo. `make demo` runs it.
"""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv
from rich.console import Console
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sapwood import SapwoodClassifier, SapwoodRegressor

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "demo"
# It says what runs, in a line that goes away; nothing where the output is no terminal.
busy = Console().status


def bike_scores(model: Any, X: Any, y: Any) -> dict[str, str]:
    """How far predictions are off, in bikes: the root of the mean square, and the
    mean.
    """
    predicted = model.predict(X)
    rmse = root_mean_squared_error(y, predicted)
    return {
        "RMSE, bikes": f"{rmse:.1f}",
        "mean error": f"{mean_absolute_error(y, predicted):.1f}",
    }


def bank_scores(model: Any, X: Any, y: Any) -> dict[str, str]:
    """The log loss, and how often a client who subscribed has a higher probability than
    one who did not.
    """
    probabilities = model.predict_proba(X)
    auc = roc_auc_score(y == "yes", probabilities[:, 1])
    return {
        "log loss": f"{log_loss(y, probabilities):.3f}",
        "AUC (1: best)": f"{auc:.3f}",
    }


def one_hot(X: pa.Table, model: Any) -> Any:
    """A linear model with what it needs for this table: categories, hours and months
    one-hot, other numbers scaled.
    """
    few_values = [
        pa.types.is_string(column.type) or len(column.unique()) <= 24
        for column in X.columns
    ]
    categories = (OneHotEncoder(handle_unknown="ignore"), np.flatnonzero(few_values))
    numbers = (StandardScaler(), np.flatnonzero(np.invert(few_values)))
    return make_pipeline(make_column_transformer(categories, numbers), model)


def as_array(X: pa.Table) -> Any:
    """The rows as scikit-learn takes them."""
    return np.column_stack([column.to_numpy().astype(object) for column in X.columns])


def show(
    title: str,
    name: str,
    target: str,
    sapwood: Any,
    constant: Any,
    linear: Any,
    scores: Callable[..., dict[str, str]],
) -> None:
    """Train on four fifths of the rows, measure on the others, and print what came
    out.
    """
    table = csv.read_csv(ROOT / "examples" / f"{name}.csv.gz")
    X = table.drop_columns(target)
    y = table[target].to_numpy()
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0)
    X_train = X.take(train)
    y_train = y[train]
    X_test = X.take(test)
    y_test = y[test]
    print(f"\n{title}: {len(y):,} rows, {X.num_columns} columns")

    start = time.perf_counter()
    with busy("Sapwood compares kinds of trees ..."):
        sapwood.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    kinds: Counter[str] = Counter()
    for candidate in sapwood.chosen_.tried:
        kind, _, _ = candidate.name.partition(" trees")
        kinds[kind] += candidate.part  # of the model; 0 where others were better
    print(f"  Kinds of trees compared in {seconds:.1f} s: {', '.join(kinds)}")
    print(
        f"  The best mix is the model: {', '.join(f'{part:.0%} {kind}' for kind, part in kinds.items() if part > 0)}"
    )

    with busy("scikit-learn trains ..."):
        constant.fit(as_array(X_train), y_train)
        linear = one_hot(X, linear).fit(as_array(X_train), y_train)
    rows = {
        "a constant guess": scores(constant, as_array(X_test), y_test),
        "scikit-learn's linear model": scores(linear, as_array(X_test), y_test),
        "Sapwood": scores(sapwood, X_test, y_test),
    }
    print(
        f"  {f'On the other {len(test):,} rows':46}"
        + "".join(f"{metric:>15}" for metric in rows["Sapwood"])
    )
    for label, values in rows.items():
        print(f"    {label:44}" + "".join(f"{value:>15}" for value in values.values()))

    for n_threads in (1, 2):
        with busy(f"Sapwood trains again, on {n_threads} of the threads ..."):
            again = clone(sapwood).set_params(n_jobs=n_threads).fit(X_train, y_train)
        if again.booster_.to_bytes() != sapwood.booster_.to_bytes():
            raise SystemExit(
                f"The promise is broken: {n_threads} of the threads made another model than all."
            )
    sha256 = sapwood.booster_.fingerprint()
    print(
        f"  On 1, 2 and all threads: one model, byte for byte (SHA-256 {sha256[:12]}...)"
    )

    with busy("Sapwood writes a report ..."):
        sapwood.report(
            X_test,
            y_test,
            REPORTS / f"{name}.html",
            train=(X_train, y_train),
            title=title,
        )


if __name__ == "__main__":
    REPORTS.mkdir(parents=True, exist_ok=True)
    models = (SapwoodRegressor(), DummyRegressor(), Ridge())
    show("Bikes hired in an hour", "bike_sharing", "rentals", *models, bike_scores)
    models = (
        SapwoodClassifier(),
        DummyClassifier(strategy="prior"),
        LogisticRegression(max_iter=1000),
    )
    show(
        "Clients of a bank who subscribe when called",
        "bank_marketing",
        "subscribed",
        *models,
        bank_scores,
    )
    print(
        "\nOpen in a browser: build/demo/bike_sharing.html, build/demo/bank_marketing.html"
    )
    print(
        "Next: .venv/bin/sapwood train examples/bank_marketing.csv.gz --target subscribed"
    )
