"""Products of parameters: every pair of values at each commit, every combination each
night.

In: axes of values, or the tests of one function. Out: a small part of them in which
every two values of two axes meet. conftest.py gives the rest of a test marked
`pairwise` the marker `nightly`, which `make test` leaves out.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

from hypothesis import settings


def daily(
    *axes: Iterable[Any], strength: int = 2, when: Callable[..., bool] | None = None
) -> list[tuple[tuple[Any, ...], bool]]:
    """The product of the axes where `when` holds, and of each combination whether it
    runs at each commit.

    Those that do are chosen so that any `strength` values of as many axes meet in one
    of them, if they meet at all.
    """
    values = list(product(*map(list, axes)))
    values = values if when is None else [one for one in values if when(*one)]
    chosen = part(values, strength)
    return [(one, place in chosen) for place, one in enumerate(values)]


def part(values: Sequence[Sequence[Any]], strength: int = 2) -> set[int]:
    """Places of a few of the combinations, in which any `strength` values that meet in
    all of them meet too.
    """
    named = [[repr(value) for value in one] for one in values]
    groups = (
        list(combinations(range(len(named[0])), min(strength, len(named[0]))))
        if named
        else []
    )
    covered: set[tuple[Any, ...]] = set()
    chosen: set[int] = set()
    # first those that bring the most that is new
    for wanted in range(len(groups), 0, -1):
        first = len(chosen)
        for place in [*range(first, len(named)), *range(first)]:
            new = {
                (group, *(named[place][axis] for axis in group)) for group in groups
            } - covered
            if len(new) >= wanted:
                covered |= new
                chosen.add(place)
    return chosen


def examples(n: int) -> int:
    """How many examples hypothesis draws where a night would draw `n`; the profile says
    how many in a hundred.
    """
    return max(1, n * settings.default.max_examples // 100)
