"""The size of a tree, and the limits as the core takes them."""

from typing import Any

import pytest

from sapwood.boost.round import growth
from sapwood.device import host
from sapwood.errors import ParameterError
from sapwood.params import resolve


@pytest.mark.parametrize(
    ("policy", "given", "expected"),
    [
        ("leafwise", {}, (31, None)),
        ("leafwise", {"max_depth": 5}, (None, 5)),
        ("leafwise", {"max_leaves": 7}, (7, None)),
        ("leafwise", {"max_leaves": 7, "max_depth": 5}, (7, 5)),
        ("leafwise", {"max_leaves": None}, (None, None)),
        ("leafwise", {"max_depth": None}, (31, None)),
        ("depthwise", {}, (None, 6)),
        ("depthwise", {"max_leaves": 7}, (7, None)),
        ("depthwise", {"max_leaves": None}, (None, 6)),
        ("depthwise", {"max_depth": None}, (None, None)),
        ("symmetric", {}, (None, 6)),
        ("symmetric", {"max_leaves": None}, (None, 6)),
        ("symmetric", {"max_leaves": 31}, (None, 4)),
        ("symmetric", {"max_leaves": 32}, (None, 5)),
        ("symmetric", {"max_leaves": 32, "max_depth": None}, (None, 5)),
        ("symmetric", {"max_leaves": 32, "max_depth": 3}, (None, 3)),
        ("symmetric", {"max_leaves": 8, "max_depth": 9}, (None, 3)),
        ("symmetric", {"max_depth": 16}, (None, 16)),
    ],
)
def test_size(
    policy: str, given: dict[str, Any], expected: tuple[int | None, int | None]
) -> None:
    params = resolve({"grow_policy": policy, **given})
    assert growth.size(policy, params["max_leaves"], params["max_depth"]) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"max_depth": None},
            "grow_policy='symmetric' needs a depth; set max_depth or max_leaves.",
        ),
        (
            {"max_depth": None, "max_leaves": None},
            "grow_policy='symmetric' needs a depth",
        ),
        (
            {"max_depth": 17},
            r"max_depth=17 is too large for grow_policy='symmetric'; choose 1\.\.16.",
        ),
        ({"max_leaves": 2**17}, "max_depth=17 is too large"),
    ],
)
def test_a_symmetric_tree_needs_a_depth(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        growth.limits(resolve({"grow_policy": "symmetric", **given}))


def test_limits_in_the_words_of_the_core() -> None:
    policy, limits = growth.limits(
        resolve({"max_depth": 3, "reg_lambda": 2, "eta": 0.5, "colsample_bynode": 0.5})
    )
    assert policy == "leafwise"
    assert limits == {
        "max_depth": 3,
        "max_leaves": 0,
        "min_child_weight": 1.0,
        "min_samples_leaf": 0,
        "reg_lambda": 2.0,
        "reg_alpha": 0.0,
        "min_split_gain": 0.0,
        "max_delta_step": 0.0,
        "path_smooth": 0.0,
        "colsample_bytree": 1.0,
        "colsample_bylevel": 1.0,
        "colsample_bynode": 0.5,
        "max_cat_to_onehot": 4,
        "max_cat_threshold": 32,
        "cat_smooth": 10.0,
        "cat_l2": 10.0,
        "min_data_per_group": 100,
    }


def test_every_grower_of_the_core_is_a_policy() -> None:
    assert all(
        growth.limits(resolve({"grow_policy": name}))[0] == name
        for name in host.growers()
    )


def test_an_unknown_policy_names_the_nearest() -> None:
    with pytest.raises(
        ParameterError,
        match="grow_policy='leafwize' is unknown; did you mean 'leafwise'",
    ):
        growth.limits(resolve({"grow_policy": "leafwize"}))
