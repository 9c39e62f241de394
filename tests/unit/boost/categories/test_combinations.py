"""Combinations of columns: the law, rows that are watched, what models and files of
them say, what is refused.
"""

import dataclasses
import re
from collections.abc import Callable
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sapwood
from sapwood import Booster, Dataset
from sapwood.boost.categories import combinations
from sapwood.data import container, target_statistics
from sapwood.data.categories import Dictionary
from sapwood.data.ingest import Columns
from sapwood.errors import DataError, ModelFormatError, ParameterError
from sapwood.model.combinations import Combinations, join
from sapwood.system import writing
from spec.helpers import assert_bits

Floats = NDArray[np.float64]
N = 400
SMALL: dict[str, Any] = {
    "n_estimators": 9,
    "max_depth": 3,
    "min_child_weight": 0.0,
    "learning_rate": 0.3,
    "min_samples_leaf": 1,
    "category_encoding": "ordered",
    "max_combination": 3,
}


def rows(objective: str = "logistic", seed: int = 0) -> tuple[NDArray[Any], Floats]:
    """A number, two columns of text that matter together only, and one that matters
    above a threshold of the number.
    """
    rng = np.random.default_rng(seed)
    x, a, b, c = (
        rng.normal(size=N),
        rng.integers(0, 8, N),
        rng.integers(0, 8, N),
        rng.integers(0, 6, N),
    )
    z = 2.0 * ((5 * a + 3 * b) % 7 < 3) + (x > 0.5) * (c % 2) + 0.3 * rng.normal(size=N)
    X = np.array(
        [
            x,
            *(
                [f"{name}{code}" for code in codes]
                for name, codes in zip("abc", (a, b, c), strict=True)
            ),
        ]
    ).T
    X = X.astype(object)
    X[:, 0] = x
    X[rng.random(N) < 0.05, 1] = None
    labels = {
        "logistic": z > 1,
        "softmax": np.digitize(z, [0.5, 2]),
        "squared_error": z,
    }
    return X, labels[objective].astype(np.float64)


def data_of(X: Any, y: Any, **more: Any) -> Dataset:
    return Dataset(X, y, categorical_features=[1, 2, 3], min_samples_bin=1, **more)


def fitted(objective: str = "logistic", **params: Any) -> Booster:
    return sapwood.train(
        SMALL | {"objective": objective} | params, data_of(*rows(objective))
    )


@pytest.fixture(scope="module")
def booster() -> Booster:
    return fitted()


@pytest.mark.parametrize("most", [1, 3])
def test_watched_rows_are_predicted_alike(most: int, tmp_path: Path) -> None:
    """New categories among them: they are not missing ones, in a dataset from a file
    too.
    """
    X, y = rows()
    X[300:320, 1], X[320:330, 2] = "new", "newer"
    data = data_of(X[:300], y[:300])
    valid = Dataset(X[300:], y[300:], reference=data)
    valid.save(tmp_path / "valid")
    booster = sapwood.train(
        SMALL | {"objective": "logistic", "max_combination": most},
        data,
        valid=[valid, Dataset.load(tmp_path / "valid")],
    )
    p = booster.predict(X[300:])
    loss = -np.mean(np.where(y[300:] == 1, np.log(p), np.log(1 - p)))
    for name in ("valid_0", "valid_1"):
        assert booster.history[name]["logloss"][-1] == pytest.approx(loss, rel=1e-12)


def test_what_matters_together_is_found() -> None:
    X, y = rows("squared_error", 5)
    data = data_of(X[:300], y[:300])
    valid = Dataset(X[300:], y[300:], reference=data)
    one, two = (
        sapwood.train(
            SMALL | {"n_estimators": 60, "learning_rate": 0.1, "max_combination": most},
            data,
            valid=valid,
        )
        for most in (1, 2)
    )
    assert two.history["valid"]["rmse"][-1] < 0.8 * one.history["valid"]["rmse"][-1]
    assert {"f1+f2"} < set(two.internal_names)
    assert all(len(own) <= 2 for own in two.combinations.sources())


def test_no_own_label() -> None:
    """Another label of a row changes no value of it in any order."""
    X, y = rows()
    data = data_of(X, y)
    sources = ((0, 0.25), (1, 0.0), (2, 0.0))
    (one,) = combinations.joined(data, sources, slice(None))
    assert (
        one.keys is not None
        and len(one.keys) == one.size == len(set(one.codes.tolist())) > 20
    )
    for which in range(3):
        order = target_statistics.permutation(0, which, N)
        for row in (0, 17, 399):
            values = []
            for label in (y, np.where(np.arange(N) == row, 1 - y, y)):
                target = target_statistics.Target(label, np.array([0.5]))
                kinds = [target_statistics.Statistic("borders", (0.0, 1.0))]
                values.append(
                    next(
                        target_statistics.ordered(
                            [one.codes], [one.size], target, kinds, order, 1
                        )
                    )
                )
            assert_bits(values[0][:, row], values[1][:, row], "own")


def test_held_out_rows_are_strangers_and_the_rest_is_left_out() -> None:
    """Combinations of rounds that early stopping gives up are not in the model."""
    X, y = rows("squared_error")
    params = SMALL | {
        "n_estimators": 80,
        "early_stopping_rounds": 5,
        "validation_fraction": 0.3,
    }
    booster = sapwood.train(params, data_of(X, y))
    assert booster.n_rounds < 80
    assert booster.trees.column.max() == 3 + len(booster.combinations) > 4
    held = sapwood.boost.splits.holdout(0, 0.3, N, None, None)
    measured = booster.history["holdout"]["rmse"][booster.n_rounds - 1]
    assert measured == pytest.approx(
        np.sqrt(np.mean((booster.predict(X) - y)[held] ** 2)), rel=1e-12
    )
    other = sapwood.train(params, data_of(X, np.where(held, y[::-1], y)))
    rounds = min(booster.n_rounds, other.n_rounds)
    assert_bits(
        booster.predict(X, rounds=rounds),
        other.predict(X, rounds=rounds),
        "predictions",
    )


def test_tables_of_all_kinds(booster: Booster) -> None:
    """One row, float32 numbers, other orders of columns: a combination is the same."""
    X, _ = rows()
    whole = booster.predict(X, raw=True)
    assert_bits(
        np.array([booster.predict(X[i : i + 1], raw=True)[0] for i in range(20)]),
        whole[:20],
        "row by row",
    )
    import pandas as pd

    frame = pd.DataFrame({f"f{j}": X[:, j] for j in range(4)}).astype(
        {"f0": np.float64}
    )
    assert_bits(booster.predict(frame, raw=True), whole, "frame")
    assert_bits(
        booster.predict(frame.astype({"f0": np.float32}), raw=True)[0],
        whole[0],
        "float32",
    )
    stages = list(booster.staged_predict(X, raw=True))
    assert_bits(stages[-1], whole, "stages")
    assert booster.predict_leaves(X).shape == (N, booster.trees.n_trees)


def test_explanations_and_importances(booster: Booster) -> None:
    X, _ = rows()
    score = booster.predict(X, raw=True)
    for more in ({}, {"background": X[:20]}):
        told = booster.explain(X, **more)
        assert told.values.shape == (N, 4)
        np.testing.assert_allclose(
            told.values.sum(axis=1) + told.base_values, score, atol=1e-12
        )
    pairs = booster.explain(X[:50], interactions=True)
    np.testing.assert_allclose(
        pairs.values.sum(axis=2), booster.explain(X[:50]).values, atol=1e-12
    )

    inner = booster.importance("internal")
    names = booster.internal_names
    assert len(inner) == len(names) == 4 + len(booster.combinations)
    shared = inner[:4].copy()
    for value, own in zip(inner[4:], booster.combinations.sources(), strict=True):
        for column, _ in own:
            shared[column] += value / len(own)
    np.testing.assert_allclose(
        booster.importance("prediction_values_change"), shared, rtol=1e-12
    )
    assert booster.importance("weight").sum() == pytest.approx(
        np.count_nonzero(booster.trees.left)
    )
    assert booster.importance("total_gain").sum() == pytest.approx(
        booster.trees.gain.sum()
    )
    assert (booster.importance("permutation", X, rows()[1]) > 0).all()
    assert (booster.importance("prediction_difference", X[:2]) >= 0).all()
    assert fitted(grow_policy="symmetric").importance("interaction").shape == (4, 4)


def test_words(booster: Booster) -> None:
    text = booster.to_text()
    assert re.search(r"\+f2 in {\(.*'b\d'\), .*} or new", text)
    frame = booster.to_frame()
    assert set(frame["feature"].dropna()) <= set(booster.internal_names)
    assert "is new" in booster.why(np.array([[0.0, "b9", "b1", "c1"]], object), n=9)


def test_files(booster: Booster) -> None:
    raw = booster.to_bytes()
    again = sapwood.load(raw)
    assert again.to_bytes() == raw
    assert_bits(again.predict(rows()[0]), booster.predict(rows()[0]), "loaded")
    assert container.unpack(raw, "model", 4, ModelFormatError)
    # missing values are told from new ones
    with pytest.raises(ModelFormatError, match="version 4"):
        container.unpack(raw, "model", 3, ModelFormatError)


def put(name: str, place: Any, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda arrays: arrays[f"combination_{name}"].__setitem__(place, value)


def turn(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda arrays: arrays.update(
        {f"combination_{name}": change(arrays[f"combination_{name}"])}
    )


LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a source beyond the columns": put("column", 0, 4),
    "a negative source": put("column", 0, -1),
    "no category": put("column", slice(None), 0),
    "the threshold of a category": lambda arrays: np.putmask(
        arrays["combination_threshold"], arrays["combination_column"] > 0, 1.5
    ),
    "a threshold that is no number": put("threshold", slice(None), np.nan),
    "a key beyond the states": put("key", -1, 2**61),
    "a negative key": put("key", 0, -1),
    "keys that do not rise": turn("key", lambda keys: keys[::-1].copy()),
    "offsets that fall": turn("offset", lambda offset: offset[::-1].copy()),
    "offsets beyond the end": put("offset", -1, 999),
    "an empty combination": put("offset", 1, 0),
    "keys of none": put("key_offset", 1, 0),
    "key offsets of fewer": turn("key_offset", lambda offset: offset[1:]),
    "no combination": lambda arrays: [
        arrays.update({n: arrays[n][:0]}) for n in list(arrays) if "combination" in n
    ],
    "one fewer than trees split": turn("offset", lambda offset: offset[:-1]),
    "floats": turn("key", lambda keys: keys.astype(np.float64)),
    "two axes": turn("offset", lambda offset: offset[None]),
    "no axis": turn("offset", lambda _: np.array(3)),
    "a missing array": lambda arrays: arrays.pop("combination_key"),
    "a source twice": lambda arrays: arrays["combination_column"].__setitem__(
        slice(None), 1
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_hostile_files_raise(lie: str, booster: Booster) -> None:
    arrays, fields = container.unpack(booster.to_bytes(), "model", 4, ModelFormatError)
    arrays = {name: array.copy() for name, array in arrays.items()}
    LIES[lie](arrays)
    with pytest.raises(ModelFormatError):
        sapwood.load(container.pack("model", 4, arrays, fields))


def test_other_models_keep_their_format() -> None:
    X, y = rows()
    X[:, 1] = ["a" if one is None else one for one in X[:, 1]]
    # nothing is missing
    booster = sapwood.train(SMALL | {"max_combination": 1}, data_of(X, y))
    assert not len(booster.combinations)
    assert container.unpack(booster.to_bytes(), "model", 2, ModelFormatError)
    assert "max_combination" not in booster.params
    assert (
        dataclasses.replace(booster, combinations=Combinations.of([])).to_bytes()
        == booster.to_bytes()
    )


def test_hostile_datasets_raise(tmp_path: Path) -> None:
    X, y = rows()
    data = data_of(X, y)
    path = tmp_path / "valid"
    X[5:8, 1] = "new"
    Dataset(X, y, reference=data).save(path)
    arrays, fields = container.unpack(path.read_bytes(), "dataset", 3, DataError)
    assert arrays["unseen.1"].tolist() == [5, 6, 7]
    seen = int(np.flatnonzero(X[:, 1] == "a1")[0])
    for wrong in ([7, 6], [-1, 5], [5, N], [], [seen], [5.0, 6.0], [[5]]):
        writing.write(
            path,
            container.pack(
                "dataset", 3, arrays | {"unseen.1": np.array(wrong or [0][:0])}, fields
            ),
        )
        with pytest.raises(DataError, match="unseen"):
            Dataset.load(path)


def test_size_has_a_price() -> None:
    """The larger the price, the smaller the combinations that trees use first."""

    def first(reg: float) -> int:
        booster = fitted(model_size_reg=reg, n_estimators=3)
        return max(
            (
                len(keys)
                for own, keys in zip(*parts(booster), strict=True)
                if len(own) > 1
            ),
            default=0,
        )

    def parts(booster: Booster) -> tuple[list[Any], list[Any]]:
        return list(booster.combinations.sources()), list(booster.combinations.keys())

    assert combinations.size_weight(10, 10, 1.0) == pytest.approx(0.5)
    assert combinations.size_weight(10, 10, 0.0) == 1.0
    assert first(20.0) < first(0.0)


def test_columns_with_a_direction_are_not_joined() -> None:
    booster = fitted("squared_error", monotone_constraints={0: 1}, n_estimators=17)
    assert all(
        column != 0 for own in booster.combinations.sources() for column, _ in own
    )
    assert (
        any(len(own) > 1 for own in booster.combinations.sources())
        and booster.check_constraints()
    )
    free = fitted(n_estimators=17)
    assert any(column == 0 for own in free.combinations.sources() for column, _ in own)
    told = free.check_constraints(
        monotone_constraints={0: 1}, interaction_constraints=[[0, 1], [2, 3]]
    )
    assert (
        told.monotone["f0"].holds is None
        and told.interaction is not None
        and told.interaction.holds is False
    )
    assert free.check_constraints(interaction_constraints=[[0, 1, 2, 3]]).interaction


def test_refusals(booster: Booster, tmp_path: Path) -> None:
    X, y = rows()
    data = data_of(X, y)
    for params, text in (
        (
            {"category_encoding": "partition"},
            "max_combination=3 is for category_encoding='ordered' or 'both'",
        ),
        (
            {"max_combination": 1, "model_size_reg": 1.0},
            "model_size_reg is for combinations",
        ),
        ({"max_combination": 9}, "max_combination=9 is too large; choose 1..8"),
    ):
        with pytest.raises(ParameterError, match=text):
            sapwood.train(SMALL | params, data)
    with pytest.raises(DataError, match="init_model has combinations"):
        sapwood.train({"objective": "logistic"}, data, init_model=booster)
    for suffix, text in (
        (".json", "categor"),
        (".onnx", "combinations of columns, which ONNX does not have"),
    ):
        with pytest.raises(ParameterError, match=text):
            booster.export(tmp_path / f"model{suffix}")
    with pytest.raises(ParameterError, match="no combinations of columns"):
        booster.influence(X[:1], X, y)


def test_codes_are_places_of_tuples() -> None:
    """Any type of column, on any number of threads, missing and new values among
    them.
    """
    rng = np.random.default_rng(3)
    table = [
        rng.normal(size=1000),
        rng.integers(-2, 5, 1000).astype(np.int32),
        rng.integers(-2, 4, 1000).astype(float),
    ]
    table[0][::7] = np.nan
    table.append(table[0].astype(np.float32))
    known = {1: Dictionary(tuple("abcde")), 2: Dictionary((1, 2, 3, 4))}
    sources: list[list[combinations.Source]] = [
        [(1, 0.0)],
        [(0, 0.5), (1, 0.0)],
        [(1, 0.0), (2, 0.0), (3, -0.1)],
    ]

    def states(column: int, threshold: float) -> list[int]:
        values = table[column].astype(np.float64)
        if column in known:
            return [
                known[column].n_bins if value == -1 else int(value) for value in values
            ]
        return [2 if value != value else int(value > threshold) for value in values]

    found = []
    wanted = []
    for own in sources:
        tuples = list(zip(*(states(*source) for source in own), strict=True))
        some = sorted({one for one in tuples[:200] if min(one) >= 0})
        wanted.append([some.index(one) if one in some else -1 for one in tuples])
        sizes = [
            known[column].n_bins + 1 if column in known else 3 for column, _ in own
        ]
        keys = join(list(np.array(some).T), sizes)
        assert keys.tolist() == sorted(keys.tolist())
        found.append((own, keys))
    columns = Columns(table, None, 1000, 4)
    for n_threads in (1, 3):
        whole = Combinations.of(found).added(columns, known, n_threads)
        assert [
            column.tolist() for column in whole.as_columns()[4:]
        ] == wanted and whole.n_columns == 7
    assert all(-1 in codes and 0 in codes for codes in wanted)


@pytest.mark.parametrize("zero_as_missing", [False, True])
def test_sparse_numbers_are_sources(zero_as_missing: bool) -> None:
    import pandas as pd

    X, _ = rows()
    thin = np.where(np.arange(N) % 5 < 3, 0.0, X[:, 0].astype(np.float64))
    y = (thin > 0.3) * np.array(
        [int(one[1]) % 2 for one in X[:, 2]]
    ) + 0.01 * np.arange(N) / N
    dense = pd.DataFrame({"x": thin, "b": X[:, 2]})
    sparse = dense.astype({"x": pd.SparseDtype(np.float64, 0.0)})
    how: dict[str, Any] = {"zero_as_missing": zero_as_missing, "min_samples_bin": 1}
    data = Dataset(dense, y, **how)
    booster = sapwood.train(SMALL, data, valid=Dataset(sparse, y, reference=data))
    assert any(
        column == 0 for own in booster.combinations.sources() for column, _ in own
    )
    assert (
        booster.fingerprint()
        == sapwood.train(SMALL, Dataset(sparse, y, **how)).fingerprint()
    )
    assert_bits(booster.predict(sparse), booster.predict(dense), "sparse")
    rmse = np.sqrt(np.mean((booster.predict(dense) - y) ** 2))
    assert booster.history["valid"]["rmse"][-1] == pytest.approx(rmse, rel=1e-12)


def test_cross_validation() -> None:
    X, y = rows("squared_error")
    one, two = (
        sapwood.cv(
            SMALL | {"n_estimators": 40, "max_combination": most},
            data_of(X, y),
            n_folds=3,
        )
        for most in (1, 2)
    )
    assert two["rmse_mean"][-1] < one["rmse_mean"][-1]


def test_exact_values_of_combinations(booster: Booster) -> None:
    """Raw values by all sets of columns, against those of mixed rows one by one."""
    X, _ = rows()
    told = booster.explain(X[:2], background=X[50:53], exact=True)
    worth = np.zeros((2, 16))
    for known in range(16):
        for other in X[50:53]:
            mixed = np.array(
                [
                    [own[j] if known >> j & 1 else other[j] for j in range(4)]
                    for own in X[:2]
                ],
                object,
            )
            worth[:, known] += booster.predict(mixed, raw=True) / 3
    by_hand = np.zeros((2, 4))
    for j in range(4):
        for known in range(16):
            if not known >> j & 1:
                chance = (
                    factorial(known.bit_count()) * factorial(3 - known.bit_count()) / 24
                )
                by_hand[:, j] += chance * (worth[:, known | 1 << j] - worth[:, known])
    np.testing.assert_allclose(told.values, by_hand, atol=1e-12)
    # shared equally
    assert (
        np.abs(told.values - booster.explain(X[:2], background=X[50:53]).values).max()
        > 1e-3
    )
