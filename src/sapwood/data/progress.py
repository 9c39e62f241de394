"""Who looks on while data is read and trees grow: progress bars. They see every pass
and each round of every training.

In: a function, for as long as a `with` block lasts. Out: calls of it; nothing that it
does changes a model.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Sight:
    """A round that has just ended, or a batch of rows that was read."""

    # what is trained: "training", or the name of a candidate; or which pass reads rows
    stage: str
    round: int  # how many rounds are done, or rows
    n_rounds: int  # how many there may be; 0 where that is not known
    measured: Mapping[str, float]  # metrics by name; the first is watched
    higher_is_better: bool = False


Watcher = Callable[[Sight], None]
_WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())


@contextmanager
def watching(watcher: Watcher, alone: bool = False) -> Iterator[None]:
    """Call a function after each round of all trainings, and each batch of all passes,
    in this block.

    ``alone``: those who watch outside of the block see nothing of it.
    """
    token = _WATCHERS.set((*(() if alone else _WATCHERS.get()), watcher))
    try:
        yield
    finally:
        _WATCHERS.reset(token)


def tell(
    stage: str,
    done: int,
    n_rounds: int,
    measured: Mapping[str, float],
    higher_is_better: bool = False,
) -> None:
    """Call all who watch."""
    for watcher in _WATCHERS.get():
        watcher(Sight(stage, done, n_rounds, measured, higher_is_better))
