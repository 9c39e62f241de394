"""Trees of a training, frozen block by block: the same as all of them frozen at
once.
"""

import numpy as np
import pytest

from sapwood.boost.leaves.linear import scaled
from sapwood.boost.round.tree_store import BLOCK, TreeStore
from sapwood.device import Tree
from sapwood.model.trees import DTYPES, Trees

N_ROUNDS = BLOCK + 24


def tree(seed: int) -> Tree:
    """A stump by a number or a set of categories, whose leaves may have terms."""
    rng = np.random.default_rng(seed)
    by_set = seed % 3 == 0
    grown = {
        "column": [seed % 2, -1, -1],
        "threshold": [0.0 if by_set else rng.normal(), 0, 0],
        "missing_left": [1, 0, 0],
        "left": [1, 0, 0],
        "value": [0, *rng.normal(size=2)],
        "gain": [rng.random(), 0, 0],
        "cover": rng.random(3),
        "count": [3, 2, 1],
        "set": [0 if by_set else -1, -1, -1],
        "set_offset": [0, 2][: 1 + by_set],
        "set_code": rng.permutation(9)[: 2 * by_set],
    }
    arrays = {name: np.array(values, DTYPES[name]) for name, values in grown.items()}
    if seed > 9 and seed % 4 == 0:
        arrays["linear"] = (
            np.array([0, 0, 2, 2]),
            np.array([-1, 0], np.int32),
            rng.normal(size=2),
            np.empty(0),
        )  # type: ignore[assignment]
    return arrays  # type: ignore[return-value]


@pytest.mark.parametrize("n_rounds", [0, 1, 4, BLOCK, N_ROUNDS])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_are_nowhere_seen(n_rounds: int, weighted: bool) -> None:
    grown = TreeStore(2)
    all_trees = []
    weights = np.empty(0)
    for index in range(N_ROUNDS):
        pair = [tree(2 * index), tree(2 * index + 1)]
        all_trees.extend((one, output) for output, one in enumerate(pair))
        weights = np.append(weights, 1.0) * (
            0.5 + 0.5 * np.random.default_rng(index).random(index + 1)
        )
        grown.add((pair, weights if weighted else None))
        if index + 1 == n_rounds:
            then = weights
    kept = all_trees[: 2 * n_rounds]
    if weighted and n_rounds:
        kept = [
            (scaled(one, then[at // 2]), output)
            for at, (one, output) in enumerate(kept)
        ]  # type: ignore[misc]
    wanted = Trees.of(kept)
    got = grown.trees(n_rounds)
    assert grown.n_rounds == N_ROUNDS
    for name in DTYPES:
        np.testing.assert_array_equal(
            getattr(got, name), getattr(wanted, name), err_msg=name
        )
    assert (got.linear is None) == (wanted.linear is None) == (n_rounds < 7)
    if got.linear and wanted.linear:
        for mine, other in zip(got.linear.terms, wanted.linear.terms, strict=True):
            np.testing.assert_array_equal(mine, other)
