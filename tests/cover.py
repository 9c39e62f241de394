"""Products of parameters: every pair of values at each commit, every combination each night.

In: axes of values. Out: their product, in which a small part is marked as daily: a part in which every two values of
two axes meet somewhere. The rest carries the marker `nightly`, which `make test` leaves out and `make test-all` runs.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import settings


def daily(
    *axes: Iterable[Any], strength: int = 2, when: Callable[..., bool] | None = None
) -> list[tuple[tuple[Any, ...], bool]]:
    """The product of the axes where `when` holds, and of each combination whether it runs at each commit.

    Those that do are chosen so that any `strength` values of as many axes meet in one of them, if they meet at all.
    """
    values = [list(axis) for axis in axes]
    places = [p for p in product(*map(range, map(len, values))) if when is None or when(*_at(values, p))]
    groups = list(combinations(range(len(values)), min(strength, len(values))))
    covered: set[tuple[Any, ...]] = set()
    chosen: set[tuple[int, ...]] = set()
    for wanted in range(len(groups), 0, -1):  # first those that bring the most that is new
        for place in _turned(places, len(chosen)):
            new = {(group, *(place[axis] for axis in group)) for group in groups} - covered
            if len(new) >= wanted:
                covered |= new
                chosen.add(place)
    return [(_at(values, place), place in chosen) for place in places]


def every(
    names: str,
    *axes: Collection[Any],
    strength: int = 2,
    when: Callable[..., bool] | None = None,
    indirect: Sequence[str] = (),
) -> pytest.MarkDecorator:
    """`parametrize` over the product of the axes, by day only over a part in which every two values meet."""
    params = [
        pytest.param(*one, id="-".join(map(_label, one)), marks=() if by_day else pytest.mark.nightly)
        for one, by_day in daily(*axes, strength=strength, when=when)
    ]
    return pytest.mark.parametrize(names.split(", "), params, indirect=list(indirect))


def examples(n: int) -> int:
    """How many examples hypothesis draws where a night would draw `n`; the profile says how many in a hundred."""
    return max(1, n * settings.default.max_examples // 100)


def _at(values: list[list[Any]], place: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(axis[index] for axis, index in zip(values, place, strict=True))


def _turned(places: list[tuple[int, ...]], by: int) -> list[tuple[int, ...]]:
    return places[by % len(places) :] + places[: by % len(places)] if places else []


def _label(value: Any) -> str:
    """A name in the list of tests: what a dictionary sets, what a number is."""
    if isinstance(value, dict):
        return ",".join(f"{key}={one}" for key, one in value.items()) or "plain"
    return str(value)
