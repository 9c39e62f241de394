"""Trees written by hand, small enough to work out every answer on paper."""

from typing import Any

import numpy as np

NAN = float("nan")
INF = float("inf")
LOG2 = 0.6931471805599453
LOG3 = 1.0986122886681098
LOG4 = 1.3862943611198906
LOG5 = 1.6094379124341003


def grown(*nodes: dict[str, Any]) -> dict[str, np.ndarray]:
    """A tree as the core returns it, from one dict a node; what a node does not say is
    0, in a leaf column -1.
    """
    names = {
        "column": np.int32,
        "bin": np.int32,
        "threshold": float,
        "missing_left": np.uint8,
        "left": np.int32,
    }
    names |= dict.fromkeys(["value", "gain", "cover", "count"], float)
    names |= {"set": np.int32}
    empty = {"column": -1, "bin": -1, "set": -1}
    sets = [node["codes"] for node in nodes if "codes" in node]
    of_sets = iter(range(len(sets)))
    nodes = tuple(
        node | {"set": next(of_sets)} if "codes" in node else node for node in nodes
    )
    arrays = {
        name: np.array([node.get(name, empty.get(name, 0)) for node in nodes], dtype)
        for name, dtype in names.items()
    }
    arrays["set_offset"] = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    arrays["set_code"] = np.array([code for one in sets for code in one], np.int32)
    return arrays


def leaf(value: float, cover: float = 1.0) -> dict[str, Any]:
    return {"value": value, "cover": cover, "count": cover}


def split(
    column: int,
    threshold: float,
    left: int,
    gain: float,
    cover: float,
    missing_left: int = 0,
) -> dict[str, Any]:
    return {
        "column": column,
        "threshold": threshold,
        "left": left,
        "gain": gain,
        "cover": cover,
        "count": cover,
        "missing_left": missing_left,
    }


def choice(
    column: int,
    codes: list[int],
    left: int,
    gain: float,
    cover: float,
    missing_left: int = 0,
) -> dict[str, Any]:
    """A split by categories: these codes go left."""
    return split(column, 0.0, left, gain, cover, missing_left) | {"codes": codes}


FIRST = grown(
    split(0, 30.0, left=1, gain=8.0, cover=6.0, missing_left=1),  # age <= 30 or missing
    leaf(1.5, 2.0),
    split(1, INF, left=3, gain=2.0, cover=4.0),  # income is not missing
    leaf(-2.0, 3.0),
    leaf(4.0, 1.0),
)
SECOND = grown(
    split(1, 100.0, left=1, gain=1.0, cover=6.0), leaf(0.25, 4.0), leaf(-0.5, 2.0)
)

# age, income, leaf in the first tree, leaf in the second, prediction = 10 + the two
# leaf values
ROWS = [
    (25.0, 50.0, 1, 1, 11.75),
    (30.0, 101.0, 1, 2, 11.0),
    (NAN, NAN, 1, 2, 11.0),
    (31.0, 100.0, 3, 1, 8.25),
    (31.0, NAN, 4, 2, 13.5),
    (INF, INF, 3, 2, 7.5),
    (-INF, -INF, 1, 1, 11.75),
]

BY_CITY = grown(
    # Rom, Oslo or missing
    choice(1, [0, 2], left=1, gain=5.0, cover=9.0, missing_left=1),
    leaf(1.0, 4.0),
    choice(2, [1], left=3, gain=1.0, cover=5.0),  # -1
    leaf(2.0, 2.0),
    leaf(4.0, 3.0),
)
BY_AGE = grown(
    split(0, 30.0, left=1, gain=3.0, cover=9.0),
    leaf(0.5, 4.0),
    choice(1, [1, 2, 3], left=3, gain=1.0, cover=5.0),  # all but Rom
    leaf(-1.0, 2.0),
    leaf(8.0, 3.0),
)

# age, city, size, leaf in the first tree, leaf in the second, prediction = 10 + the two
# leaf values
CHOICES = [
    (25.0, "Rom", 7, 1, 1, 11.5),
    (31.0, "Rom", -1, 1, 4, 19.0),
    (31.0, "Oslo", 2**60, 1, 3, 10.0),
    (31.0, "Bern", -1, 3, 3, 11.0),
    (31.0, "Zürich", 2**60, 4, 3, 13.0),
    (31.0, "Bern", 7, 4, 3, 13.0),
    (31.0, None, 7, 1, 4, 19.0),  # missing
    (31.0, "Paris", 7, 1, 4, 19.0),  # never seen: as missing
    (NAN, "Bern", None, 4, 3, 13.0),
    (30.0, "Bern", 2**61, 4, 1, 14.5),
    (30.0, "bern", 7, 1, 1, 11.5),  # another value
]
