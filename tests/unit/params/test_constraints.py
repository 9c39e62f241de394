"""Constraints as they are written: names, positions, the words of the peers; groups;
refused where they cannot be.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sapwood
from cover import examples
from sapwood import Dataset, SapwoodClassifier, SapwoodRegressor
from sapwood.errors import ParameterError
from sapwood.params import constraints, resolve
from spec.helpers import along, labels, table


@settings(max_examples=examples(60))
@given(
    st.integers(0, 2**32),
    st.sampled_from(["leafwise", "depthwise", "symmetric"]),
    st.one_of(
        st.sampled_from(["pairwise", "no_interactions"]),
        st.lists(
            st.sets(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=3
        ),
    ),
    st.sampled_from([1.0, 0.5]),
)
def test_groups_are_never_mixed(
    seed: int, policy: str, groups: Any, fraction: float
) -> None:
    rng = np.random.default_rng(seed)
    X = table(rng, 120)
    params = {
        "interaction_constraints": groups,
        "grow_policy": policy,
        "n_estimators": 3,
        "max_depth": 5,
    }
    sampled = {
        "colsample_bylevel": fraction,
        "colsample_bynode": fraction,
        "min_child_weight": 0.0,
    }
    booster = sapwood.train(
        params | sampled, Dataset(X, label=labels(rng, X, "squared_error"))
    )
    for path in paths(booster):
        if groups == "pairwise":
            assert len(path) <= 2
        else:
            allowed = [] if isinstance(groups, str) else groups
            assert len(path) <= 1 or any(path <= group for group in allowed)
    assert booster.check_constraints()


def paths(booster: sapwood.Booster) -> list[set[int]]:
    """The columns above every leaf."""
    found = []
    for index in range(booster.trees.n_trees):
        tree = booster.trees.slice(index, index + 1)
        above: list[set[int]] = [set() for _ in tree.left]
        for node in np.flatnonzero(tree.left):
            above[tree.left[node]] = above[tree.left[node] + 1] = above[node] | {
                int(tree.column[node])
            }
        found += [above[leaf] for leaf in np.flatnonzero(tree.left == 0)]
    return found


def test_several_targets_have_the_same_constraint() -> None:
    rng = np.random.default_rng(1)
    X = table(rng, 300)
    y = np.column_stack(
        [labels(rng, X, "squared_error"), -labels(rng, X, "squared_error")]
    )
    booster = sapwood.train(
        {"monotone_constraints": {0: 1}, "n_estimators": 8}, Dataset(X, label=y)
    )
    scores = along(booster, X, 0)
    assert scores.shape[2] == 2
    assert np.diff(scores, axis=1).min() >= 0
    assert np.ptp(scores[..., 0]) > 0.5  # where it goes with the data it is learned


def test_names_positions_and_the_words_of_the_peers() -> None:
    rng = np.random.default_rng(2)
    X = table(rng, 200)
    y = labels(rng, X, "squared_error")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    same = [
        {"monotone_constraints": {"a": 1, "c": -1}},
        {"monotone_constraints": {"c": -1, "a": 1, "b": 0}},
        {"monotone_constraints": {0: 1, np.int64(2): -1}},
        {"monotone_constraints": [1, 0, -1, 0, 0, 0]},
        {"monotonic_cst": np.array([1, 0, -1, 0, 0, 0])},
        {"mc": (1, 0, -1, 0, 0, 0), "monotone_constraints_method": "basic"},
        {"monotone_constraints": "(1,0,-1,0,0,0)"},
    ]
    data = Dataset(frame, label=y)
    prints = {
        sapwood.train(one | {"n_estimators": 2}, data).fingerprint() for one in same
    }
    assert len(prints) == 1
    groups = [
        {"interaction_constraints": [["a", "b"], ["c"]]},
        {"interaction_cst": [{0, 1}, {2}]},
        {"interaction_constraints": "[[0,1],[2]]"},
        {"interaction_constraints": "[0,1],[2]"},
    ]
    assert (
        len(
            {
                sapwood.train(one | {"n_estimators": 2}, data).fingerprint()
                for one in groups
            }
        )
        == 1
    )
    assert (
        SapwoodRegressor(n_estimators=2, monotone_constraints={"a": 1, "c": -1})
        .fit(frame, y)
        .booster_.fingerprint()
        in prints
    )


def test_forced_splits_from_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = table(rng, 200)
    data = Dataset(X, label=labels(rng, X, "squared_error"))
    told = {"feature": 3, "threshold": 0.5, "left": {"feature": 0, "threshold": 0.0}}
    file = tmp_path / "forced.json"
    file.write_text(json.dumps(told))
    by_file = sapwood.train(
        {"forcedsplits_filename": str(file), "n_estimators": 3}, data
    )
    assert (
        by_file.fingerprint()
        == sapwood.train({"forced_splits": told, "n_estimators": 3}, data).fingerprint()
    )
    roots = by_file.trees.offset[:-1]
    assert set(by_file.trees.column[roots]) == {3}
    assert set(by_file.trees.column[roots + by_file.trees.left[roots]]) == {0}
    assert (
        sapwood.load(by_file.to_bytes()).params["forced_splits"]["left"]["feature"]
        == by_file.feature_names[0]
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"monotone_constraints": [1, 0]}, "2 directions, the data 6 columns"),
        ({"monotone_constraints": {"q": 1}}, "names the column 'q'"),
        ({"monotone_constraints": {7: 1}}, "columns 0..5"),
        ({"monotone_constraints": {0: 2}}, "not -1"),
        ({"monotone_constraints": {0.5: 1}}, "give a name or a position"),
        ({"monotone_constraints": "(1,x)"}, "not a list of directions"),
        ({"monotone_constraints": 1}, "neither a dict nor a sequence"),
        (
            {"monotone_constraints": {0: 1}, "objective": "softmax"},
            "what one class gains",
        ),
        (
            {"monotone_constraints": {0: 1}, "objective": "one_vs_all"},
            "what one class gains",
        ),
        ({"monotone_method": "strict"}, "is unknown"),
        ({"interaction_constraints": [0, 1]}, "not a list of groups"),
        ({"interaction_constraints": "[[0,"}, "not a list of groups"),
        ({"interaction_constraints": [[0, 9]]}, "columns 0..5"),
        ({"extra_trees": 1}, "neither True nor False"),
        ({"forced_splits": {"feature": 0}}, "feature, threshold"),
        (
            {"forced_splits": {"feature": 0, "threshold": 1.0, "default_left": True}},
            "feature, threshold",
        ),
        ({"forced_splits": "no/such/file.json"}, "not a file of forced splits"),
        ({"forced_splits": {"feature": 0, "threshold": 1e9}}, "separates no rows"),
        (
            {
                "forced_splits": {"feature": 0, "threshold": 0.0},
                "grow_policy": "symmetric",
            },
            "single nodes",
        ),
        (
            {
                "forced_splits": {"feature": 0, "threshold": 0.0},
                "colsample_bynode": 0.5,
            },
            "in every tree",
        ),
        (
            {
                "forced_splits": {
                    "feature": 0,
                    "threshold": 0.0,
                    "left": {"feature": 1, "threshold": 0.0},
                },
                "interaction_constraints": [[1, 2]],
            },
            "on one path",
        ),
    ],
    ids=lambda one: str(one) if isinstance(one, dict) else "",
)
def test_refused(params: dict[str, Any], message: str) -> None:
    rng = np.random.default_rng(4)
    X = table(rng, 60)
    objective = params.get("objective", "squared_error")
    with pytest.raises(ParameterError, match=message):
        sapwood.train(params, Dataset(X, label=labels(rng, X, objective)))


def test_several_classes_are_refused_two_are_not() -> None:
    rng = np.random.default_rng(5)
    X = table(rng, 200)
    with pytest.raises(ParameterError, match="what one class gains"):
        SapwoodClassifier(monotone_constraints={0: 1}).fit(X, labels(rng, X, "softmax"))
    model = SapwoodClassifier(monotone_constraints={0: 1}, n_estimators=5).fit(
        X, labels(rng, X, "logistic")
    )
    assert model.booster_.check_constraints()


@pytest.mark.parametrize(
    "nothing",
    [
        {"monotone_constraints": [0] * 6},
        {"monotone_constraints": {}},
        {"monotone_method": "intermediate"},
        {"forced_splits": {}},
    ],
    ids=str,
)
def test_constraints_on_nothing_change_no_tree(nothing: dict[str, Any]) -> None:
    rng = np.random.default_rng(6)
    X = table(rng, 200)
    data = Dataset(X, label=labels(rng, X, "squared_error"))
    plain = sapwood.train({"n_estimators": 3}, data)
    other = sapwood.train(nothing | {"n_estimators": 3}, data)
    assert other.trees.value.tobytes() == plain.trees.value.tobytes()


def test_a_table_of_defaults_is_unconstrained() -> None:
    names = ("monotone_constraints", "interaction_constraints", "forced_splits")
    assert all(resolve({})[name] is None for name in names)


def test_constraints_on_many_columns_are_read_in_linear_time() -> None:
    names = [f"column{place}" for place in range(20_000)]
    params = dict.fromkeys(
        (
            "feature_weights",
            "first_use_penalties",
            "forced_splits",
            "category_encoding",
            "statistics",
        )
    )
    given = {
        "monotone_constraints": dict.fromkeys(names, 1),
        "interaction_constraints": [names],
    }
    begin = time.process_time()
    by_name = constraints.by_name({**params, **given}, names)
    groups = constraints.groups(by_name["interaction_constraints"], names)
    assert by_name["monotone_constraints"] == given["monotone_constraints"]
    assert groups == [list(range(20_000))]
    # looking each name up in the list took 6 s
    assert time.process_time() - begin < 1.0
