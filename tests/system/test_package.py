"""`import sapwood`: every public name, none of the libraries that only some people
need, and quickly.
"""

import subprocess
import sys

import numpy as np
import pytest

import sapwood


@pytest.mark.parametrize("name", sapwood.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(sapwood, name) is getattr(sapwood, name)
    assert name in dir(sapwood)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = sapwood.nonsense


def test_import_loads_nothing_but_python() -> None:
    code = "import sys, sapwood; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {
        "numpy",
        "pandas",
        "polars",
        "pyarrow",
        "narwhals",
        "sklearn",
        "matplotlib",
        "cupy",
        "dask",
        "safetensors",
    }
    assert "sapwood" in loaded and not heavy & set(loaded)


def test_training_on_an_array_loads_no_table_library() -> None:
    code = (
        "import sys, numpy as np, sapwood\n"
        "data = sapwood.Dataset(np.eye(4), np.arange(4.0))\n"
        "sapwood.train({'n_estimators': 1}, data).predict(np.eye(4))\n"
        "print(*{'pandas', 'polars', 'pyarrow', 'matplotlib', 'cupy', 'dask'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("exp", 1.0, np.e),
        ("log", np.e, 1.0),
        ("log1p", 0.0, 0.0),
        ("expm1", 0.0, 0.0),
        ("sigmoid", 0.0, 0.5),
    ],
)
def test_elementary_functions_keep_the_shape(name: str, x: float, y: float) -> None:
    function = getattr(sapwood.math, name)
    assert function(x).shape == () and function(x) == pytest.approx(y, rel=1e-15)
    table = np.full((4, 6), x)[::2, ::3]
    assert function(table).shape == (2, 2) and (function(table) == function(x)).all()
    assert function([]).shape == (0,)
