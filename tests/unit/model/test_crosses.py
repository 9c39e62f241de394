"""A model of data with crosses takes tables without them: predictions, explanations,
files, other formats.
"""

import ctypes
import os
import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

import sapwood
from sapwood import Booster, Dataset
from sapwood.data import container
from sapwood.data.crosses import KINDS
from sapwood.errors import DataError, ModelFormatError, ParameterError
from sapwood.model.io import KIND, VERSION

COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
RNG = np.random.default_rng(11)
N = 900
X = pd.DataFrame(RNG.normal(size=(N, 4)).astype(np.float32), columns=list("abcd"))
X.loc[::13, "a"], X.loc[::50, "b"] = np.nan, 0.0
X["town"] = np.where(
    RNG.random(N) < 0.1, None, RNG.choice(np.array(list("uvwxyz"), object), N)
)
Y = (
    np.nan_to_num(X.a * X.b - X.c * X.d)
    + (X.town == "u") * np.nan_to_num(X.a)
    + 0.1 * RNG.normal(size=N)
)
CROSSES = [
    ("product", "a", "b"),
    ("product", "c", "d"),
    ("centred", "a", "town"),
    ("ratio", "a", "c"),
    ("difference", "d", "c"),
]
NUMBERS = [one for one in CROSSES if one[0] != "centred"]
SHAPE = {"n_estimators": 12, "max_leaves": 12}
DATA = Dataset(X, Y, linear_leaves=True)
CONSTANT, LINEAR = (
    DATA.with_crosses(CROSSES, linear_leaves=linear) for linear in (False, True)
)


@pytest.fixture(scope="module")
def model() -> Booster:
    return sapwood.train(SHAPE, CONSTANT)


@pytest.fixture(scope="module")
def linear() -> Booster:
    return sapwood.train(SHAPE, LINEAR)


@pytest.fixture(scope="module")
def numbers() -> Booster:
    data = Dataset(X[list("abcd")], Y, linear_leaves=True)
    return sapwood.train(SHAPE, data.with_crosses(NUMBERS, linear_leaves=False))


@pytest.mark.parametrize("leaves", [False, True])
def test_the_trees_of_a_table_that_has_the_columns(leaves: bool) -> None:
    data = LINEAR if leaves else CONSTANT
    values = LINEAR.values
    assert values is not None
    wide = X.assign(
        **{name: values[:, 5 + j] for j, name in enumerate(data.feature_names[5:])}
    )
    plain = sapwood.train(SHAPE, Dataset(wide, Y, linear_leaves=leaves))
    model = sapwood.train(SHAPE, data)
    assert {5, 6}.issubset(model.trees.column.tolist())
    assert_array_equal(model.predict(X), plain.predict(wide))
    assert model.internal_names == plain.feature_names == data.feature_names
    if not leaves:
        assert_allclose(
            model.importance("internal"), plain.importance("internal"), rtol=1e-14
        )
        assert_array_equal(
            model.influence(X[:3], X, Y), plain.influence(wide[:3], wide, Y)
        )


@pytest.mark.parametrize("kind", ["model", "linear", "numbers"])
def test_predictions(kind: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(kind)
    table = X[list(model.feature_names)]
    found = model.predict(table)
    assert_array_equal(
        found[:300],
        np.concatenate([model.predict(table[i : i + 1]) for i in range(300)]),
    )
    for n_jobs in (1, 2, 3, 7):
        assert_array_equal(model.predict(table, n_jobs=n_jobs), found)
    assert_array_equal(model.predict(pl.from_pandas(table)), found)
    assert_array_equal(model.predict(table[table.columns[::-1]]), found)
    assert_array_equal(list(model.staged_predict(table))[-1], found)
    assert_array_equal(
        model.predict(table, rounds=3), list(model.staged_predict(table))[2]
    )
    leaves = model.predict_leaves(table)
    assert leaves.shape == (N, 12)
    if kind == "numbers":
        array = table.to_numpy()
        assert array.dtype == np.float32
        for given in (
            array,
            array.astype(float),
            np.asfortranarray(array),
            array[:100],
            array[:1].astype(float),
        ):
            assert_array_equal(model.predict(given), found[: len(given)])
        stored = np.nan_to_num(array)
        for sparse in (scipy.sparse.csr_array(stored), scipy.sparse.csc_array(stored)):
            assert_array_equal(model.predict(sparse), model.predict(stored))
    with pytest.raises(
        DataError,
        match=r"features, but Sapwood is expecting|not those seen in training",
    ):
        model.predict(np.zeros((2, len(model.internal_names))))


@pytest.mark.parametrize("kind", ["model", "linear"])
def test_files(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    model = request.getfixturevalue(kind)
    model.save(tmp_path / "model")
    new = X.assign(town="never seen")
    for again in (sapwood.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert (
            again.fingerprint() == model.fingerprint()
            and again.crosses == model.crosses
        )
        assert_array_equal(again.predict(X), model.predict(X))
        assert_array_equal(again.predict(new), model.predict(new))


def test_versions(model: Booster) -> None:
    assert b'"version":5' in model.to_bytes().replace(b'\\"', b'"').replace(b" ", b"")
    plain = sapwood.train(SHAPE, Dataset(X[list("abcd")], Y))
    assert b"cross" not in plain.to_bytes()


LIES: dict[str, Any] = {
    "no such kind": lambda a: (
        a | {"cross_kind": a["cross_kind"] + np.uint8(len(KINDS))}
    ),
    "no such column": lambda a: a | {"cross_left": a["cross_left"] + np.int32(4)},
    "of itself": lambda a: a | {"cross_right": np.full_like(a["cross_right"], 5)},
    "below 0": lambda a: a | {"cross_right": -a["cross_right"] - np.int32(1)},
    "another type": lambda a: a | {"cross_offset": a["cross_offset"].astype(np.int32)},
    "a table of means": lambda a: a | {"cross_mean": a["cross_mean"].reshape(2, -1)},
    "too few means": lambda a: a | {"cross_mean": a["cross_mean"][1:]},
    "too many means": lambda a: a | {"cross_mean": np.append(a["cross_mean"], 0.0)},
    "a missing mean": lambda a: (
        a | {"cross_mean": np.append(a["cross_mean"][1:], np.nan)}
    ),
    "far offsets": lambda a: a | {"cross_offset": a["cross_offset"] * 2**40},
    "an array less": lambda a: {
        name: one for name, one in a.items() if name != "cross_mean"
    },
    "one less": lambda a: (
        a | {name: a[name][:-1] for name in ("cross_kind", "cross_left", "cross_right")}
    ),
    "none": lambda a: {
        name: one for name, one in a.items() if not name.startswith("cross")
    },
}


@pytest.mark.parametrize("lie", LIES)
def test_hostile_files(lie: str, model: Booster) -> None:
    arrays, fields = container.unpack(model.to_bytes(), KIND, VERSION, ModelFormatError)
    with pytest.raises(ModelFormatError):
        sapwood.load(container.pack(KIND, VERSION, LIES[lie](arrays), fields))


def test_explanations(model: Booster) -> None:
    rows = X[:60]
    raw = model.predict(X[:60], raw=True)
    for more in (
        {},
        {"background": X[100:120]},
        {"background": X[100:105], "exact": True},
    ):
        told = model.explain(rows, **more)
        assert told.values.shape == (60, 5)
        assert_allclose(told.values.sum(axis=1) + told.base_values, raw, atol=1e-12)
    pairs = model.explain(rows, interactions=True)
    assert_allclose(pairs.values.sum(axis=2), model.explain(rows).values, atol=1e-12)
    # A cross's part goes to its two columns, half each.
    values = LINEAR.values
    wide = model.internal_names
    assert values is not None
    table = X.assign(**{name: values[:, 5 + j] for j, name in enumerate(wide[5:])})
    apart = sapwood.train(SHAPE, Dataset(table, Y)).explain(table[:60]).values
    wanted = apart[:, :5].copy()
    for j, (_, *columns) in enumerate(CROSSES):
        for column in columns:
            wanted[:, list(X.columns).index(column)] += 0.5 * apart[:, 5 + j]
    assert_allclose(model.explain(rows).values, wanted, atol=1e-12)
    own = model.explain(rows, internal=True)
    assert own.feature_names == wide
    assert_allclose(own.values, apart, atol=1e-12)
    assert_allclose(own.data[:, 5:], values[:60, 5:])
    top = wide[int(np.argmax(np.abs(own.values[3])))]
    assert f"because {top} = " in model.why(rows[3:4], n=1) and top in (
        "a * b",
        "c * d",
    )
    with pytest.raises(ParameterError, match="internal=True for what is made of them"):
        model.explain(rows, background=rows, exact=True, internal=True)
    effect = model.partial_dependence(X, "a", grid=5)
    assert effect.values.shape == (5,)
    assert len(model.accumulated_effects(X, "b").grid) == 1


def test_lines_of_crosses_are_explained(linear: Booster) -> None:
    assert (
        linear.trees.linear is not None
        and (linear.trees.linear.linear_column >= 5).any()
    )
    rows = X[:60]
    raw = linear.predict(X[:60], raw=True)
    for more in (
        {},
        {"background": X[100:120]},
        {"background": X[100:105], "exact": True},
        {"internal": True},
    ):
        told = linear.explain(rows, **more)
        assert_allclose(told.values.sum(axis=1) + told.base_values, raw, atol=1e-11)
    pairs = linear.explain(rows, interactions=True)
    assert_allclose(pairs.values.sum(axis=2), linear.explain(rows).values, atol=1e-11)
    assert linear.importance("internal").shape == (10,)


def test_importance(model: Booster) -> None:
    for kind in ("gain", "total_gain", "weight", "prediction_values_change"):
        found = model.importance(kind)
        assert found.shape == (5,) and (found >= 0).all()
    own = model.importance("internal")
    assert own.shape == (10,) and own.sum() == pytest.approx(
        model.importance("prediction_values_change").sum()
    )
    assert model.internal_names[int(np.argmax(own))] in ("a * b", "c * d")
    for kind in ("permutation", "loss_function_change"):
        assert model.importance(kind, X, Y).shape == (5,)
    for kind in ("prediction_difference", "catboost_prediction_difference"):
        with pytest.raises(ParameterError, match="models without crosses"):
            model.importance(kind, X[:2])


def test_text(model: Booster, linear: Booster) -> None:
    assert "a * b <= " in model.to_text()
    assert {"a * b", "c * d"}.issubset(model.to_frame()["feature"])
    assert "(a * b)" in linear.to_text() and "(a * b) <= " not in linear.to_text()
    assert linear.to_frame()["linear"].str.contains("(c * d)", regex=False).any()


def test_what_others_cannot_have(
    model: Booster, numbers: Booster, tmp_path: Path
) -> None:
    with pytest.raises(
        ParameterError, match="crosses of columns cannot be written for XGBoost"
    ):
        numbers.export(tmp_path / "model.json")
    with pytest.raises(ParameterError, match="crosses"):
        numbers.to_shap()
    assert not list(tmp_path.iterdir())


def test_onnx(tmp_path: Path) -> None:
    """Crosses have the same bits there; sums are float32. One model has lines, which
    must be in standard units.
    """
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    table = X.copy()
    table.loc[3, "a"], table.loc[4, "b"], table.loc[5, "d"] = np.inf, 1e30, -1e30
    table.loc[:20, "town"] = "never seen"
    for data, more in ((CONSTANT, {}), (LINEAR, {"linear_units": "standard"})):
        model = sapwood.train(SHAPE | more, data)
        assert {0, 1, 2, 3} <= set(model.crosses.cross_kind.tolist())
        model.export(tmp_path / "model.onnx")
        session = runtime.InferenceSession(
            str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
        )
        rows = table.copy()
        rows["town"] = [
            np.nan if pd.isna(one) else model.categories[4].place.get(one, -2.0)
            for one in table["town"]
        ]
        (raw,) = session.run(["raw"], {"X": rows.to_numpy(np.float32)})
        assert_allclose(raw[:, 0], model.predict(table, raw=True), rtol=4e-6, atol=4e-6)


def agrees(model: Booster, table: pd.DataFrame, folder: Path) -> None:
    """The C file gives the model's raw scores, bit for bit."""
    model.export(folder / "model.c")
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
    call = ctypes.CDLL(str(folder / "model.so")).model_raw
    rows = table.copy()
    for j, known in model.categories.items():
        name = model.feature_names[j]
        rows[name] = [
            -1.0 if pd.isna(value) else known.place.get(value, -2.0)
            for value in table[name]
        ]
    found = np.zeros(len(rows))
    for row, out in zip(
        np.ascontiguousarray(rows.to_numpy(float)), found.reshape(-1, 1), strict=True
    ):
        call(ctypes.c_void_p(row.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    assert_array_equal(found, model.predict(table, raw=True))


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("kind", ["model", "linear", "numbers"])
def test_c(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    model = request.getfixturevalue(kind)
    table = X[list(model.feature_names)].copy()
    table.loc[3, "a"], table.loc[4, "b"], table.loc[5, "d"] = np.inf, 1e30, -1e30
    if kind != "numbers":
        table.loc[:20, "town"] = "never seen"
    agrees(model, table, tmp_path)


def test_beside_combinations(tmp_path: Path) -> None:
    kinds = X.assign(kind=RNG.choice(np.array(list("klmn"), object), N))
    label = Y + 2.0 * ((kinds.town == "u") ^ (kinds.kind == "k")) * (
        np.nan_to_num(X.c * X.d) > 0.2
    )
    data = Dataset(kinds, label, linear_leaves=True).with_crosses(
        CROSSES, linear_leaves=False
    )
    params = {
        **SHAPE,
        "category_encoding": "ordered",
        "max_combination": 3,
        "min_samples_leaf": 1,
        "n_estimators": 40,
    }
    model = sapwood.train(params, data, valid=Dataset(kinds, label, reference=data))
    sources = [column for own in model.combinations.sources() for column, _ in own]
    # a cross is a source of a combination
    assert len(model.combinations) and max(sources) >= 6
    assert (
        model.n_internal == len(model.internal_names) == 6 + 5 + len(model.combinations)
    )
    found = model.predict(kinds)
    assert model.history["valid"]["rmse"][-1] == pytest.approx(
        np.sqrt(np.mean((found - label) ** 2)), rel=1e-12
    )
    assert_array_equal(sapwood.load(model.to_bytes()).predict(kinds), found)
    told = model.explain(kinds[:40])
    assert_allclose(told.values.sum(axis=1) + told.base_values, found[:40], atol=1e-12)
    assert_allclose(model.shares.sum(axis=1), 1.0, rtol=1e-15)
    if COMPILER is not None:
        kinds.loc[:9, "town"] = "never seen"
        agrees(model, kinds, tmp_path)


@pytest.mark.parametrize("leaves", [False, True])
def test_validation_and_continuation(leaves: bool) -> None:
    data = LINEAR if leaves else CONSTANT
    valid = Dataset(X[:300], Y[:300], reference=data)
    model = sapwood.train(SHAPE, data, valid=valid)
    rmse = np.sqrt(np.mean((model.predict(X[:300]) - Y[:300]) ** 2))
    assert model.history["valid"]["rmse"][-1] == pytest.approx(rmse, rel=1e-12)
    half = sapwood.train({**SHAPE, "n_estimators": 6}, data)
    whole = sapwood.train({**SHAPE, "n_estimators": 6}, data, init_model=half)
    assert_array_equal(whole.predict(X), model.predict(X))
    for other in (
        DATA,
        DATA.with_crosses(CROSSES[:3]),
        DATA.with_crosses(CROSSES[::-1]),
    ):
        with pytest.raises(DataError, match="init_model has other crosses"):
            sapwood.train(SHAPE, other, init_model=half)
    with pytest.raises(DataError, match="init_model has other crosses"):
        sapwood.train(SHAPE, data, init_model=sapwood.train(SHAPE, DATA))
    with pytest.raises(DataError, match="'valid' has other columns"):
        sapwood.train(SHAPE, data, valid=DATA)
    assert sapwood.cv({**SHAPE, "n_estimators": 3}, data, n_folds=3)


def test_constraints(model: Booster) -> None:
    for name in ("a", "c * d"):
        with pytest.raises(
            ParameterError, match="crosses of columns could break its order"
        ):
            sapwood.train({**SHAPE, "monotone_constraints": {name: 1}}, CONSTANT)
    with pytest.raises(
        ParameterError, match="interaction_constraints keeps columns apart"
    ):
        sapwood.train({**SHAPE, "interaction_constraints": [["a", "b"]]}, CONSTANT)
    told = model.check_constraints({"a": 1}, [["a", "b"], ["c", "d"]])
    assert (
        told.monotone["a"].holds is None and "part of a cross" in told.monotone["a"].why
    )
    assert told.interaction is not None and told.interaction.holds is False
    pairs = DATA.with_crosses([("product", "a", "b")], linear_leaves=False)
    kept = sapwood.train({**SHAPE, "monotone_constraints": {"c": 1}}, pairs)
    assert kept.check_constraints() and "a * b" in kept.to_text()


def test_no_rows(model: Booster, numbers: Booster) -> None:
    assert model.predict(X[:0]).shape == (0,) and numbers.predict(
        np.zeros((0, 4))
    ).shape == (0,)
    assert model.explain(X[:0]).values.shape == (0, 5)
    assert model.predict_leaves(X[:0]).shape == (0, 12)
