"""Metrics of survival analysis: concordance, Brier scores, and AUC at a time.

In: times, events, and risks (higher: sooner) or probabilities of survival. Out: one
number, or one for each time.

Censoring weights come from the Kaplan-Meier estimate of the censoring of the training
rows: `train` is a pair (time, event) or a structured array of event and time. Every
event above 0 counts; of one cause, give ``event == cause``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import host
from sapwood.errors import DataError
from sapwood.metric.times import numbers, pair_of, times_and_events

__all__ = [
    "brier_survival",
    "concordance",
    "concordance_ipcw",
    "dynamic_auc",
    "integrated_brier",
    "kaplan_meier",
]

Floats = NDArray[np.float64]
TIED = 1e-8  # risks that differ by no more are equal
CHUNK = 1 << 22  # pairs that are looked at together


def kaplan_meier(time: Any, event: Any, reverse: bool = False) -> tuple[Floats, Floats]:
    """Distinct times and the share that lives longer; `reverse`: that is not censored
    by then.
    """
    time, event = _checked(time, event)
    times, place = np.unique(time, return_inverse=True)
    total = np.bincount(place, minlength=len(times))
    dead = np.bincount(place[event], minlength=len(times))
    at_risk = np.cumsum(total[::-1])[::-1]
    if reverse:  # events come before censorings of the same time
        at_risk = at_risk - dead
        dead = total - dead
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(at_risk > 0, 1.0 - dead / np.maximum(at_risk, 1), 1.0)
    share: Floats = np.cumprod(left).astype(np.float64)
    return times, share


def concordance(time: Any, event: Any, risk: Any) -> float:
    """Harrell's C: the share of comparable pairs in which the row with the event first
    has the higher risk.

    A pair is comparable if the shorter time is an event; of equal times, an event comes
    before a censoring. Equal risks count half.
    """
    time, event = _checked(time, event)
    counts = _pairs(
        time, event, _risks(risk, len(time)), np.where(event, 1, 0).astype(np.int64)
    )
    return _share(*counts)


def concordance_ipcw(
    train: Any, time: Any, event: Any, risk: Any, tau: float | None = None
) -> float:
    """Uno's C: pairs are weighted by 1 / G(t)^2, with G that of the censoring of the
    training rows, up to `tau`.
    """
    time, event = _checked(time, event)
    g = _censoring(train, time)
    counted = event & (np.ones(len(time), np.bool_) if tau is None else time < tau)
    with np.errstate(divide="ignore"):
        weight = np.where(counted & (g > 0), 1.0 / np.maximum(g, 1e-300) ** 2, 0.0)
    unit = 2.0 ** (40 - np.frexp(max(float(weight.max()), 1e-300))[1])
    return _share(
        *_pairs(
            time,
            event,
            _risks(risk, len(time)),
            np.rint(weight * unit).astype(np.int64),
        )
    )


def brier_survival(
    train: Any, time: Any, event: Any, survival: Any, times: Any
) -> Floats:
    """The Brier score at each of `times` of probabilities (n_rows, n_times) of living
    longer.
    """
    time, event = _checked(time, event)
    times = np.atleast_1d(np.asarray(times, np.float64))
    p = np.asarray(survival, np.float64)
    if p.shape != (len(time), len(times)):
        raise DataError(
            f"survival has the shape {p.shape}; it needs {len(time)} rows and {len(times)} times."
        )
    own = _censoring(train, time)
    then = _censoring(train, times)
    found = np.empty(len(times))
    for k, at in enumerate(times):
        dead = (time <= at) & event
        alive = time > at
        with np.errstate(divide="ignore"):
            weight = np.where(dead & (own > 0), 1 / np.maximum(own, 1e-300), 0.0)
            weight = np.where(alive & (then[k] > 0), 1 / max(then[k], 1e-300), weight)
        found[k] = host.exact_sum(
            np.where(alive, 1.0 - p[:, k], p[:, k]) ** 2 * weight, None
        ) / len(time)
    return found


def integrated_brier(
    train: Any, time: Any, event: Any, survival: Any, times: Any
) -> float:
    """The mean Brier score over `times`, by the trapezoid rule; lower is better."""
    times = np.asarray(times, np.float64)
    if len(times) < 2 or (np.diff(times) <= 0).any():
        raise DataError("integrated_brier needs at least two times, rising.")
    score = brier_survival(train, time, event, survival, times)
    return float(
        np.sum((score[1:] + score[:-1]) / 2 * np.diff(times)) / (times[-1] - times[0])
    )


def dynamic_auc(train: Any, time: Any, event: Any, risk: Any, times: Any) -> Floats:
    """At each of `times`, the chance that a row with an event by then has a higher risk
    than one that lives longer.
    """
    time, event = _checked(time, event)
    risk = _risks(risk, len(time))
    own = _censoring(train, time)
    found = np.empty(len(times))
    for k, at in enumerate(np.asarray(times, np.float64)):
        case = (time <= at) & event & (own > 0)
        control = time > at
        if not case.any() or not control.any():
            found[k] = np.nan
            continue
        others = np.sort(risk[control])
        below = np.searchsorted(others, risk[case], side="left")
        equal = np.searchsorted(others, risk[case], side="right") - below
        weight = 1.0 / own[case]
        hits = host.exact_sum(weight * (below + 0.5 * equal), None)
        found[k] = hits / (host.exact_sum(weight, None) * len(others))
    return found


def _censoring(train: Any, at: Floats) -> Floats:
    """The share of training rows that is not censored by a time."""
    pair = pair_of(train)
    if pair is None:
        raise DataError(
            "train is neither a pair (time, event) nor a structured array of event and time."
        )
    times, left = kaplan_meier(*pair, reverse=True)
    return np.append(1.0, left)[np.searchsorted(times, at, side="right")]


def _pairs(
    time: Floats, event: NDArray[np.bool_], risk: Floats, weight: NDArray[np.int64]
) -> tuple[int, int, int]:
    """Weights of concordant, of equal and of all comparable pairs, as integers."""
    right = same = every = 0
    first = np.flatnonzero(event & (weight > 0))
    step = max(1, CHUNK // max(1, len(time)))
    for at in range(0, len(first), step):
        rows = first[at : at + step]
        later = (time > time[rows, None]) | ((time == time[rows, None]) & ~event)
        tied = np.abs(risk - risk[rows, None]) <= TIED
        ahead = (risk < risk[rows, None]) & ~tied
        for n, i in zip((later & ahead).sum(1).tolist(), rows, strict=True):
            right += n * int(weight[i])
        for n, i in zip((later & tied).sum(1).tolist(), rows, strict=True):
            same += n * int(weight[i])
        for n, i in zip(later.sum(1).tolist(), rows, strict=True):
            every += n * int(weight[i])
    return right, same, every


def _share(right: int, same: int, every: int) -> float:
    if every == 0:
        raise DataError(
            "no two rows are comparable: there is no event before another row's time."
        )
    return (2 * right + same) / (2 * every)


def _checked(time: Any, event: Any) -> tuple[Floats, NDArray[np.bool_]]:
    times, causes = times_and_events(time, event)
    if not len(times):
        raise DataError("there is no row.")
    return times, causes > 0


def _risks(risk: Any, n_rows: int) -> Floats:
    found = numbers(risk, "risks")
    if found.shape != (n_rows,):
        raise DataError(
            f"risks have the shape {found.shape}; there are {n_rows} times."
        )
    return found
