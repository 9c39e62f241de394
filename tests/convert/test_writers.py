"""Models written for XGBoost and ONNX, and read by them."""

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
        model.predict(rows, output_margin=True), booster.predict(X, raw=True), rtol=2e-6, atol=2e-6
    )
    np.testing.assert_allclose(model.predict(rows), booster.predict(X), rtol=5e-6, atol=2e-6)
    again = sw.load(tmp_path / "model.json")
    np.testing.assert_allclose(again.predict(X, raw=True), booster.predict(X, raw=True), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("objective", LABELS)
@pytest.mark.parametrize("more", [{}, {"boosting": "forest", "subsample": 0.7}], ids=["plain", "forest"])
def test_onnxruntime_reads_it(objective, more, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    booster = trained(objective, **more)
    booster.export(tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    raw, prediction = session.run(["raw", "prediction"], {"X": X})
    wanted = booster.predict(X, raw=True)
    np.testing.assert_allclose(raw, wanted.reshape(raw.shape), rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(prediction, booster.predict(X).reshape(raw.shape), rtol=5e-6, atol=2e-6)


@pytest.mark.parametrize("kind", ["linear_leaves", "zero_as_missing"])
@pytest.mark.parametrize("suffix", ["c", "json", "onnx"])
def test_what_no_format_can_say_is_refused(kind, suffix, tmp_path):
    booster = sw.train({"n_estimators": 2}, sw.Dataset(X, label=Z, **{kind: True}))
    with pytest.raises(sw.errors.ParameterError, match="no format written here"):
        booster.export(tmp_path / f"model.{suffix}")
    assert not list(tmp_path.iterdir())


def test_what_they_cannot_have(tmp_path):
    with pytest.raises(sw.errors.ParameterError, match="no place in XGBoost"):
        trained("multilabel").export(tmp_path / "model.json")
    pytest.importorskip("onnx")
    hinge = sw.train({"objective": "hinge", "n_estimators": 2}, sw.Dataset(X, label=(Z > 0).astype(float)))
    with pytest.raises(sw.errors.ParameterError, match="no ONNX operators"):
        hinge.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
