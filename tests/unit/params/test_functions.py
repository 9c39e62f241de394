"""What the functions of users ask the data for."""

import numpy as np
import pytest

import sapwood as sw
from sapwood.errors import DataError, ParameterError

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0)
GROUP = [0, 0, 1, 1, 1, 2]


def test_get_field_has_everything_that_a_dataset_was_given() -> None:
    data = sw.Dataset(X, Y, Y + 1, Y + 2, group=GROUP)
    for name, wanted in {
        "label": Y,
        "weight": Y + 1,
        "init_score": Y + 2,
        "group": [0, 2, 5, 6],
    }.items():
        np.testing.assert_array_equal(data.get_field(name), wanted)
    several = sw.Dataset(X, init_score=X)
    np.testing.assert_array_equal(several.get_field("init_score"), X)
    assert several.get_field("label") is several.get_field("group") is None
    assert several.num_data() == several.num_row() == 6


def test_get_field_has_everything_that_a_table_of_a_peer_was_given() -> None:
    for data in (
        sw.DMatrix(X, Y, weight=Y + 1, base_margin=Y + 2, group=[2, 3, 1]),
        sw.Pool(
            X, Y, weight=Y + 1, baseline=Y + 2, group_id=["b", "b", "a", "a", "a", "c"]
        ),
    ):
        for name, wanted in {
            "label": Y,
            "weight": Y + 1,
            "init_score": Y + 2,
            "group": [0, 2, 5, 6],
        }.items():
            np.testing.assert_array_equal(data.get_field(name), wanted)


def test_get_field_refuses_what_it_cannot_answer() -> None:
    with pytest.raises(
        ParameterError, match="get_field has no field 'position'; choose one of group"
    ):
        sw.Dataset(X, Y).get_field("position")
    with pytest.raises(DataError, match="is for groups of consecutive rows"):
        sw.Dataset(X, Y, group=GROUP[::-1] + np.array([0, 0, 0, 0, 0, 2])).get_field(
            "group"
        )
