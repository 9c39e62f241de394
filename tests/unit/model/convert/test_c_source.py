"""A model as C: compiled, asked the same rows."""

import ctypes
import os
import shutil
import subprocess

import numpy as np
import pytest

import sapwood as sw

COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
X[RNG.random(X.shape) < 0.1] = np.nan
Z = np.nan_to_num(X[:, 0]) * 2 + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
LABELS = {
    "squared_error": Z,
    "logistic": (Z > 0).astype(float),
    "exponential": (Z > 0).astype(float),
    "hinge": (Z > 0).astype(float),
    "poisson": np.round(np.exp(Z / 3)),
    "squared_log": np.exp(Z / 3),
    "softmax": np.digitize(Z, [-1.0, 1.0]).astype(float),
    "one_vs_all": np.digitize(Z, [-1.0, 1.0]).astype(float),
}


def agrees(booster, table, rows, folder):
    """Whether the C file says what the booster says of a table, given as rows of
    doubles.
    """
    booster.export(folder / "model.c", name="my_model")
    command = [
        COMPILER,
        "-std=c99",
        "-O1",
        "-Wall",
        "-Werror",
        "-ffp-contract=off",
        "-fPIC",
        "-shared",
    ]
    subprocess.run(
        [*command, "model.c", "-o", "model.so", "-lm"], cwd=folder, check=True
    )
    library = ctypes.CDLL(str(folder / "model.so"))
    for name, raw in (("raw", True), ("predict", False)):
        got = np.zeros((len(rows), booster.n_outputs))
        call = getattr(library, f"my_model_{name}")
        for row, out in zip(np.ascontiguousarray(rows), got, strict=True):
            call(ctypes.c_void_p(row.ctypes.data), ctypes.c_void_p(out.ctypes.data))
        wanted = booster.predict(table, raw=raw).reshape(got.shape)
        if raw:
            np.testing.assert_array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-14)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("objective", LABELS)
@pytest.mark.parametrize("boosting", ["plain", "forest"])
def test_same_bits(objective, boosting, tmp_path):
    params = {
        "objective": objective,
        "n_estimators": 7,
        "max_leaves": 12,
        "boosting": boosting,
    }
    params |= {"subsample": 0.7} if boosting == "forest" else {}
    booster = sw.train(
        params,
        sw.Dataset(
            X, label=LABELS[objective], feature_names=['a"\\', "b?", "ü", "d*/", "e"]
        ),
    )
    rows = np.vstack(
        [X, np.full((1, 5), np.nan), np.full((1, 5), np.inf), np.full((1, 5), -np.inf)]
    )
    agrees(booster, rows, rows, tmp_path)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("policy", ["leafwise", "symmetric"])
def test_categories(policy, tmp_path):
    codes = RNG.integers(0, 12, 400)
    label = np.sin(5.0 * codes) + np.nan_to_num(X[:, 0])
    names = np.array([f"town {code}" for code in range(12)], object)
    table = {"town": np.where(codes == 3, None, names[codes]), "x": X[:, 0]}
    pandas = pytest.importorskip("pandas")
    params = {
        "grow_policy": policy,
        "n_estimators": 6,
        "max_leaves": 8,
        "min_data_per_group": 5,
        "cat_smooth": 1.0,
    }
    booster = sw.train(params, sw.Dataset(pandas.DataFrame(table), label=label))
    assert len(booster.trees.set_code)
    table["town"][:7] = "never seen"
    place = booster.categories[0].place
    rows = np.column_stack(
        [[place.get(value, -1.0) for value in table["town"]], table["x"]]
    )
    agrees(booster, pandas.DataFrame(table), rows, tmp_path)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_combinations(tmp_path):
    codes = RNG.integers(0, 9, (2, 400))
    label = np.sin(5.0 * (codes[0] + 2 * codes[1])) + (
        np.nan_to_num(X[:, 0]) > 0.3
    ) * np.sin(codes[0])
    towns, kinds = (
        np.array([f"{name} {code}" for code in range(9)], object)
        for name in ("town", "kind")
    )
    table = {
        "town": np.where(codes[0] == 3, None, towns[codes[0]]),
        "kind": kinds[codes[1]],
        "x": X[:, 0],
    }
    pandas = pytest.importorskip("pandas")
    params = {
        "category_encoding": "ordered",
        "max_combination": 3,
        "n_estimators": 17,
        "min_samples_leaf": 1,
    }
    booster = sw.train(params, sw.Dataset(pandas.DataFrame(table), label=label))
    sources = list(booster.combinations.sources())
    assert (
        {2, 3} == set(map(len, sources))
        and (booster.trees.missing_left > 1).any()
        and any(threshold for own in sources for _, threshold in own)
    )
    table["town"][:7] = table["kind"][5:20] = "never seen"
    coded = [
        [
            -1.0 if value is None else booster.categories[j].place.get(value, -2.0)
            for value in table[name]
        ]
        for j, name in enumerate(("town", "kind"))
    ]
    agrees(
        booster,
        pandas.DataFrame(table),
        np.column_stack([*coded, table["x"]]),
        tmp_path,
    )


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("units", ["raw", "standard"])
@pytest.mark.parametrize("objective", ["logistic", "softmax"])
def test_linear_leaves(objective, units, tmp_path):
    params = {
        "objective": objective,
        "n_estimators": 7,
        "max_leaves": 12,
        "linear_units": units,
    }
    booster = sw.train(
        params, sw.Dataset(X, label=LABELS[objective], linear_leaves=True)
    )
    assert booster.linear
    far = np.array([np.nan, np.inf, -np.inf, 1e308, 0.3])
    agrees(
        booster,
        np.vstack([X, far, far[::-1]]),
        np.vstack([X, far, far[::-1]]),
        tmp_path,
    )


def test_what_c_cannot_have(tmp_path):
    booster = sw.train({"n_estimators": 2}, sw.Dataset(X, label=Z))
    with pytest.raises(sw.errors.ParameterError, match="is not a C identifier"):
        booster.export(tmp_path / "model.c", name="2 models")
    with pytest.raises(sw.errors.ParameterError, match=r"model\.h"):
        booster.export(tmp_path / "model.h")
    assert not list(tmp_path.iterdir())
