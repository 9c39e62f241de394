"""Programs of the peers' documentation run after the edits that `programs.py` counts:
two in the mean at most.
"""

import io
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from peers.programs import PROGRAMS

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.rename(columns=lambda name: name.replace(" ", "_"))
X["size"] = np.where(X["mean_radius"] > 14, "large", "small")
PARTS = train_test_split(X, Y, random_state=0)
NUMBERS = [
    part.drop(columns="size") if isinstance(part, pd.DataFrame) else part
    for part in PARTS
]


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_a_program_of_a_peer_runs(name: str, tmp_path: Path) -> None:
    text, edits = PROGRAMS[name]
    for module in ("optuna", "matplotlib"):
        if f"import {module}" in text:
            pytest.importorskip(module)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    train, test, y_train, y_test = NUMBERS
    names: dict[str, Any] = {
        "np": np,
        "X_train": train,
        "X_test": test,
        "y_train": y_train,
        "y_test": y_test,
        "C_train": PARTS[0].copy(),
        "C_test": PARTS[1].copy(),
        "path": str(tmp_path / "model"),
    }
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        exec(compile(text, name, "exec"), names)
    assert ((np.asarray(names["proba"]) > 0.5) == y_test).mean() > 0.9


def test_edits_are_two_in_the_mean_at_most() -> None:
    counts = {name: len(edits) for name, (_, edits) in PROGRAMS.items()}
    assert (
        len(counts) == 21
        and sum(counts.values()) / 21 <= 2
        and max(counts.values()) <= 5
    )
    assert sum(n == 1 for n in counts.values()) >= 13  # the import alone
