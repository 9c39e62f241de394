"""Models written for XGBoost and ONNX, and read by them."""

import json

import numpy as np
import pytest

import sapwood as sw

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5)).astype(np.float32)
X[RNG.random(X.shape) < 0.1] = np.nan
Z = np.nan_to_num(X[:, 0]) * 2 + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
LABELS = {
    "squared_error": Z,
    "absolute_error": Z,
    "logistic": (Z > 0).astype(float),
    "cross_entropy": 1 / (1 + np.exp(-Z)),
    "poisson": np.round(np.exp(Z / 3)),
    "gamma": np.exp(Z / 3),
    "softmax": np.digitize(Z, [-1.0, 1.0]).astype(float),
    "exponential": (Z > 0).astype(float),
    "squared_log": np.exp(Z / 3),
    "multilabel": np.column_stack([Z > 0, Z > 1]).astype(float),
}


def trained(objective: str, **more):
    params = {"objective": objective, "n_estimators": 8, "max_leaves": 12, **more}
    return sw.train(params, sw.Dataset(X, label=LABELS[objective]))


KINDS = {
    "plain": {},
    "parallel": {"n_parallel_trees": 2, "subsample": 0.7},
    "forest": {"boosting": "forest", "subsample": 0.7},
}


@pytest.mark.parametrize("objective", list(LABELS)[:7])
@pytest.mark.parametrize("more", KINDS.values(), ids=KINDS)
def test_xgboost_reads_it(objective, more, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    booster = trained(objective, **more)
    booster.export(tmp_path / "model.json")
    model = xgboost.Booster(model_file=tmp_path / "model.json")
    rows = xgboost.DMatrix(X)
    np.testing.assert_allclose(
        model.predict(rows, output_margin=True),
        booster.predict(X, raw=True),
        rtol=2e-6,
        atol=2e-6,
    )
    np.testing.assert_allclose(
        model.predict(rows), booster.predict(X), rtol=5e-6, atol=2e-6
    )
    again = sw.load(tmp_path / "model.json")
    np.testing.assert_allclose(
        again.predict(X, raw=True), booster.predict(X, raw=True), rtol=2e-6, atol=2e-6
    )


@pytest.mark.parametrize("objective", LABELS)
@pytest.mark.parametrize(
    "more", [{}, {"boosting": "forest", "subsample": 0.7}], ids=["plain", "forest"]
)
def test_onnxruntime_reads_it(objective, more, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    booster = trained(objective, **more)
    booster.export(tmp_path / "model.onnx")
    session = runtime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    raw, prediction = session.run(["raw", "prediction"], {"X": X})
    wanted = booster.predict(X, raw=True)
    np.testing.assert_allclose(raw, wanted.reshape(raw.shape), rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(
        prediction, booster.predict(X).reshape(raw.shape), rtol=5e-6, atol=2e-6
    )


CODES = RNG.integers(0, 12, 300)
EFFECT = RNG.normal(size=12)[CODES] * 2 + np.nan_to_num(X[:, 0])


def letters(codes):
    """A table with a column of categories, some missing, and one that is never seen in
    training.
    """
    pandas = pytest.importorskip("pandas")
    text = pandas.Series(codes).map(dict(enumerate("qwertyuiopas"))).where(X[:, 1] < 1)
    return pandas.DataFrame(
        {
            "x": X[:, 0].astype(float),
            "letter": text.astype("category"),
            "z": X[:, 3].astype(float),
        }
    )


@pytest.mark.parametrize("onehot", [1, 100])
@pytest.mark.parametrize("objective", ["squared_error", "logistic", "softmax"])
def test_onnxruntime_reads_categories(objective, onehot, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    y = {
        "squared_error": EFFECT,
        "logistic": EFFECT > 0,
        "softmax": np.digitize(EFFECT, [-1, 1]),
    }[objective]
    params = {
        "objective": objective,
        "n_estimators": 8,
        "max_leaves": 12,
        "min_samples_leaf": 2,
    }
    table = letters(CODES)
    data = sw.Dataset(table, label=y.astype(float), min_samples_bin=1)
    booster = sw.train(
        {
            **params,
            "max_cat_to_onehot": onehot,
            "cat_smooth": 1,
            "min_data_per_group": 2,
        },
        data,
    )
    assert (booster.trees.set >= 0).any()
    booster.export(tmp_path / "model.onnx")
    session = runtime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    known = json.loads(session.get_modelmeta().custom_metadata_map["categories"])["1"]
    places = np.array(
        [known.index(value) if value in known else np.nan for value in table["letter"]]
    )
    rows = np.column_stack([X[:, 0], places, X[:, 3]]).astype(np.float32)
    (raw,) = session.run(["raw"], {"X": rows})
    np.testing.assert_allclose(
        raw, booster.predict(table, raw=True).reshape(raw.shape), rtol=2e-6, atol=2e-6
    )


LINES = {"linear_leaves": True, "linear_units": "standard"}
PIPES = {
    "numbers": (sw.SapwoodRegressor, Z),
    "counts": (
        lambda **more: sw.SapwoodRegressor(objective="poisson", **more),
        LABELS["poisson"],
    ),
    "two": (sw.SapwoodClassifier, np.where(Z > 0, "yes", "no")),
    "three": (sw.SapwoodClassifier, np.digitize(Z, [-1.0, 1.0]) * 10),
    "lines": (
        lambda **more: sw.SapwoodClassifier(**LINES, **more),
        np.digitize(Z, [-1.0, 1.0]) * 10,
    ),
}


@pytest.mark.parametrize("name", PIPES)
def test_pipelines_through_skl2onnx(name):
    """Of float32 rows, as the graph reads them: those that another step moves across a
    cut aside, here none.
    """
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from sapwood.interfaces import onnx

    onnx.register()
    make, y = PIPES[name]
    model = make_pipeline(
        FunctionTransformer(), make(n_estimators=8, max_leaves=12)
    ).fit(X, y)
    options = {} if name in ("numbers", "counts") else {"zipmap": False}
    graph = skl2onnx.to_onnx(
        model, X[:1], options={id(model): options} if options else None
    )
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = session.run(None, {session.get_inputs()[0].name: X})
    if options:
        np.testing.assert_array_equal(found[0], model.predict(X))
        np.testing.assert_allclose(
            found[1], model.predict_proba(X), rtol=5e-6, atol=2e-6
        )
    else:
        np.testing.assert_allclose(
            found[0].ravel(), model.predict(X), rtol=5e-6, atol=2e-6
        )


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "softmax"])
@pytest.mark.parametrize(
    "more", [{}, {"grow_policy": "symmetric", "max_depth": 4}, KINDS["forest"]], ids=str
)
def test_onnxruntime_reads_linear_leaves(objective, more, tmp_path):
    """Columns far from 0 too, whose lines lose no digits."""
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    table = X + np.float32([0, 2000, 0, 0, -500])
    params = {
        "objective": objective,
        "n_estimators": 8,
        "max_leaves": 12,
        "linear_units": "standard",
        **more,
    }
    booster = sw.train(
        params, sw.Dataset(table, label=LABELS[objective], linear_leaves=True)
    )
    assert booster.linear
    booster.export(tmp_path / "model.onnx")
    session = runtime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    rows = np.vstack([table, np.full((2, 5), [[np.inf], [-np.inf]], np.float32)])
    for some in (rows, rows[:1]):
        raw, prediction = session.run(["raw", "prediction"], {"X": some})
        np.testing.assert_allclose(
            raw,
            booster.predict(some, raw=True).reshape(raw.shape),
            rtol=4e-6,
            atol=4e-6,
        )
        np.testing.assert_allclose(
            prediction, booster.predict(some).reshape(raw.shape), rtol=5e-6, atol=4e-6
        )


def test_who_has_no_linear_leaves(tmp_path):
    booster = sw.train({"n_estimators": 2}, sw.Dataset(X, label=Z, linear_leaves=True))
    with pytest.raises(
        sw.errors.ParameterError, match="linear leaves cannot be written for XGBoost"
    ):
        booster.export(tmp_path / "model.json")
    pytest.importorskip("onnx")
    with pytest.raises(
        sw.errors.ParameterError,
        match=r"linear leaves in raw units.*linear_units='standard'",
    ):
        booster.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["c", "json", "onnx"])
def test_what_no_format_can_say_is_refused(suffix, tmp_path):
    booster = sw.train(
        {"n_estimators": 2}, sw.Dataset(X, label=Z, zero_as_missing=True)
    )
    with pytest.raises(sw.errors.ParameterError, match="no format written here"):
        booster.export(tmp_path / f"model.{suffix}")
    assert not list(tmp_path.iterdir())


def test_what_skl2onnx_cannot_have():
    skl2onnx = pytest.importorskip("skl2onnx")
    from sapwood.interfaces import onnx

    onnx.register()
    several = np.column_stack([Z > 0, Z > 1]).astype(int)
    for model, y, why in (
        (sw.SapwoodRegressor(n_estimators=2, linear_leaves=True), Z, "linear leaves"),
        (sw.SapwoodClassifier(n_estimators=2), several, "two or more classes"),
        (
            sw.SapwoodClassifier(n_estimators=2, objective="hinge"),
            Z > 0,
            "no probabilities",
        ),
    ):
        with pytest.raises(sw.errors.ParameterError, match=why):
            skl2onnx.to_onnx(model.fit(X, y), X[:1])


def test_what_they_cannot_have(tmp_path):
    with pytest.raises(sw.errors.ParameterError, match="no place in XGBoost"):
        trained("multilabel").export(tmp_path / "model.json")
    pytest.importorskip("onnx")
    hinge = sw.train(
        {"objective": "hinge", "n_estimators": 2},
        sw.Dataset(X, label=(Z > 0).astype(float)),
    )
    with pytest.raises(sw.errors.ParameterError, match="no ONNX operators"):
        hinge.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
