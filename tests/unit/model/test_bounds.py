"""Explanations, texts and frames of any valid model: bounded by its size, or refused
with the reason.
"""

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sapwood as sw
from sapwood.data.categories import Dictionary
from sapwood.errors import DataError, ParameterError
from sapwood.model import Booster, text
from sapwood.model.trees import Trees
from unit.model.handmade import grown


def chain(
    n_splits: int, n_columns: int, codes: list[int] | None = None, **more: Any
) -> Booster:
    """A tree whose every split has a leaf on its left."""
    nodes: list[dict[str, Any]] = []
    for k in range(n_splits):
        cut = {"codes": codes} if codes is not None else {"threshold": float(k)}
        nodes += [
            {"column": k % n_columns, "left": 2 * k + 1, "cover": 1.0, **cut},
            {"value": 1.0, "cover": 1.0},
        ]
    nodes.append({"value": 2.0, "cover": 1.0})
    trees = Trees.of([(grown(*nodes), 0)]).with_shared_sets()
    names = [f"c{j}" for j in range(n_columns)]
    return Booster(
        trees,
        base=np.zeros(1),
        objective="squared_error",
        fields={},
        link="identity",
        feature_names=names,
        named=False,
        params={},
        **more,
    )


@pytest.fixture(autouse=True)
def quick() -> Any:
    since = time.process_time()
    yield
    assert time.process_time() - since < 10


def test_a_path_of_many_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = chain(4_000, 3)
    with pytest.raises(
        ParameterError, match="splits; models with up to 256 in the mean"
    ):
        deep.explain(np.zeros((1, 3)))
    assert len(deep.to_text()) < text.MAX_TEXT
    monkeypatch.setattr(text, "MAX_TEXT", 2**24)
    with pytest.raises(ParameterError, match="more than 16777216 characters"):
        deep.to_text()
    assert len(deep.to_frame()) == 8_001
    assert deep.predict(np.zeros((1, 3)))[0] == 1.0


def test_more_columns_on_a_path_than_are_explained() -> None:
    wide = chain(520, 520)
    with pytest.raises(ValueError, match="520 different columns; models of up to 512"):
        wide.explain(np.zeros((1, 520)))


def test_what_is_within_the_bounds_is_explained() -> None:
    model = chain(200, 200)
    rows = np.random.default_rng(0).normal(size=(3, 200)) * 200
    told = model.explain(rows)
    np.testing.assert_allclose(
        told.values.sum(axis=1) + told.base_values, model.predict(rows), rtol=1e-9
    )
    assert model.to_text().count("\n") == 402


def test_many_nodes_with_one_large_set() -> None:
    many = {0: Dictionary(tuple(f"name {k}" for k in range(60_000)))}
    model = chain(600, 1, list(range(0, 60_000, 2)), categories=many)
    assert "30000 in all" in model.to_text()
    with pytest.raises(ParameterError, match="would list 18000000 categories"):
        model.to_frame()


def test_long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_TEXT", 2**24)
    long = {0: Dictionary(tuple("x" * 100_000 + str(k) for k in range(20)))}
    model = chain(30, 1, list(range(10)), categories=long)
    for show in (model.to_text, model.to_frame):
        with pytest.raises(ParameterError, match="characters"):
            show()


def test_an_arrow_stream_is_read_once_and_never_taken_for_no_rows() -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    booster = sw.train(
        {"n_estimators": 3, "min_samples_leaf": 2},
        sw.Dataset(table, table["a"].to_numpy()),
    )
    used = table.to_reader()
    right = booster.predict(used)
    np.testing.assert_array_equal(right, booster.predict(table))
    for call in (
        booster.predict,
        booster.explain,
        booster.predict_leaves,
        booster.staged_predict,
    ):
        with pytest.raises(DataError, match="a stream can be read once"):
            call(used)
    assert booster.why(table[:1].to_reader()) == booster.why(table[:1])
    for space in ("raw", "prediction"):
        told = booster.explain(
            table.to_reader(), background=table[:9].to_reader(), space=space
        )
        np.testing.assert_array_equal(
            told.values,
            booster.explain(table, background=table[:9], space=space).values,
        )
    assert len(booster.predict(table[:0])) == 0  # a table without rows is one
