"""The time limit of a plain training, in the place of an automatic fit where no rows
can be held out.

In: when the fit began, and its limit. Out: a callback that ends the training in time.
"""

import time

from sapwood.boost.round.callback import Callback, Round
from sapwood.data.dataset import Dataset
from sapwood.errors import warn

# of a cell, when the rounds are done; measured: 0.9e-7 on two cores
FINGERPRINT_SECONDS = 1e-7
# of the time in which the table was read and binned; measured: 0.42
FINGERPRINT_SHARE = 0.5
SPARE = 0.02  # part of a time limit that is not planned with


class Deadline:
    """Ends a training before the round that would end too late, if it took as long as
    the one before.
    """

    def __init__(self, end: float, limit: float) -> None:
        self._end = end
        self._limit = limit
        self._last = time.monotonic()

    def __call__(self, view: Round) -> bool:
        now = time.monotonic()
        seconds = now - self._last
        self._last = now
        if now + seconds < self._end or view.last:
            return False
        n_rounds = len(view.rounds)
        warn(
            f"time_limit={self._limit:g} ended the training after {view.index + 1:,} of {n_rounds:,} rounds."
        )
        return True


def of_plain(limit: float | None, start: float, data: Dataset) -> list[Callback]:
    """The callbacks of a plain training whose fit began at `start`; none without a
    limit.
    """
    if limit is None:
        return []
    read_seconds = time.monotonic() - start  # says how busy the machine is
    finish = max(
        FINGERPRINT_SECONDS * data.n_rows * data.n_columns,
        FINGERPRINT_SHARE * read_seconds,
    )
    return [Deadline(start + (1 - SPARE) * limit - finish, limit)]
