"""Run as a program: one writer of files, to one path, in a folder that `prepare` has
filled.

In: the name of a writer, the folder with a table and a model, a path, and "nobody" to
write as that user.
Out: the file; errors as Python raises them.
"""

import os
import sys
import tempfile
from pathlib import Path

N_ROWS = 40_000
TREES = 400
NOBODY = 65534


def prepare(folder: Path) -> None:
    """Write a table, and two models of which one is large."""
    import numpy as np
    import pandas as pd

    import sapwood as sw

    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(N_ROWS, 4)).round(4), columns=list("abcd"))
    y = rows["a"] * rows["b"] + rng.normal(size=N_ROWS)
    rows.assign(y=y.round(4)).to_csv(folder / "table.csv", index=False)
    data = sw.Dataset(rows, y)
    sw.train({"n_estimators": 3}, data).save(folder / "old.sapwood")
    sw.train({"n_estimators": TREES}, data).save(folder / "model.sapwood")


def command(name: str, folder: Path, path: Path) -> list[str]:
    """The words of the command line for a writer."""
    model = str(folder / "model.sapwood")
    table = str(folder / "table.csv")
    lines = {
        "predict": ["predict", model, table, "--batch-size", "200"],
        "explain": ["explain", model, table],
        "report": ["report", model, "--data", table],
        "convert": ["convert", model],
        "train": [
            "train",
            table,
            "-t",
            "y",
            "--rounds",
            "40",
            "--param",
            "max_leaves=255",
        ],
        "holdout": ["train", table, "-t", "y", "--rounds", "1"],
        "tune": [
            "tune",
            table,
            "-t",
            "y",
            "--trials",
            "1",
            "--folds",
            "2",
            "--time-limit",
            "20",
        ],
    }
    flag = "--save-holdout" if name == "holdout" else "-o"
    return [*lines[name], "-q", flag, str(path)]


def in_python(name: str, folder: Path, path: Path) -> None:
    """Write by a function of the library."""
    import numpy as np

    import sapwood as sw

    booster = sw.load(folder / "model.sapwood")
    X = np.arange(4000.0).reshape(1000, 4)
    if name == "save":
        booster.save(path)
    elif name == "export":
        booster.export(path)
    elif name == "html":
        booster.report(X, X[:, 0], path)
    elif name == "dataset":
        sw.Dataset(np.tile(X, (20, 1)), np.tile(X[:, 0], 20)).save(path)
    elif name == "store":
        sw.Dataset.from_batches([(X, X[:, 0])] * 20, store=path)
    elif name == "checkpoint":
        sw.train(
            {"n_estimators": 40, "checkpoint": str(path), "checkpoint_every": 5},
            sw.Dataset(X, X[:, 0]),
        )


def main(name: str, folder: Path, path: Path, user: str = "") -> None:
    """Write once, as another user if one is given: all modules are imported before."""
    if user == "nobody":
        with tempfile.TemporaryDirectory() as other:
            in_python(name, folder, Path(other) / path.name)
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    in_python(name, folder, path)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
