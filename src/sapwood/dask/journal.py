"""The rounds of trainings that run on a worker, kept in its memory: what survives when
another worker is lost.

In: what a training is, and its trees as they grow. Out: the trees of the rounds that
any holder still has.

Every holder has the same trees. When a training starts again on the workers that are
left, the longest journal among them is sent to all, and the stored rounds need no
search for splits (`boost/checkpoint.py` does this with a file).
"""

import json
import threading
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from sapwood.boost.round import grown
from sapwood.boost.round.grown import GrownTrees
from sapwood.data import container
from sapwood.device import Tree
from sapwood.errors import MessageError
from sapwood.reduce import Reduce

KIND = "journal"
VERSION = 1
MAX_JOURNALS = 4  # trainings whose rounds are kept; the oldest goes first
_LOCK = threading.Lock()
_JOURNALS: dict[str, list[list[Tree]]] = {}  # calls of `Trainer.grow` by training


class Journal:
    """Follows one training on one worker."""

    def __init__(
        self, facts: Mapping[str, Any], reduce: Reduce, per_call: int, calls: int
    ) -> None:
        self._key = sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        self._calls = calls
        with _LOCK:
            mine = list(_JOURNALS.get(self._key, ()))
        self.known = _longest(mine[: len(mine) // calls * calls], reduce, per_call)
        with _LOCK:
            _JOURNALS.pop(self._key, None)
            while len(_JOURNALS) >= MAX_JOURNALS:
                _JOURNALS.pop(next(iter(_JOURNALS)))
            _JOURNALS[self._key] = list(self.known)
        self.grown, self._n_calls = GrownTrees(self.known), len(self.known)

    @property
    def n_known(self) -> int:
        """Rounds that need no search."""
        return len(self.known) // self._calls

    def round_done(self) -> None:
        """Keep the trees of a round."""
        fresh = self.grown.take_fresh()
        with _LOCK:
            calls = _JOURNALS.get(self._key)
            # the same training may run twice at once
            if calls is not None and len(calls) == self._n_calls:
                calls += fresh
        self._n_calls += len(fresh)

    def close(self) -> None:
        """The training has ended; the rounds stay, in case that the model does not
        reach the client.
        """


def _longest(mine: list[list[Tree]], reduce: Reduce, per_call: int) -> list[list[Tree]]:
    """The calls of the holder that has most; the first of them where several have."""
    lengths = [
        int.from_bytes(one, "little")
        for one in reduce.gather(len(mine).to_bytes(8, "little"))
    ]
    best = lengths.index(max(lengths))
    if min(lengths) == lengths[best]:
        return mine
    raw = (
        container.pack(KIND, VERSION, grown.pack(mine), {})
        if reduce.rank == best
        else b""
    )
    arrays, _ = container.unpack(reduce.gather(raw)[best], KIND, VERSION, MessageError)
    return grown.unpack(arrays, per_call)
