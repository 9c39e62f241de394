"""Losses of survival analysis: Cox's partial likelihood, accelerated failure times,
piecewise constant hazards.

In: times, events, times of entry, or bounds of times. Out: objects that `objective`
takes.

Sums over risk sets are of integers, so the order of rows changes no bit (NUMERICS,
survival).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary
from sapwood.errors import DataError, ParameterError

Floats = NDArray[np.float64]
ROOT_TWO_PI = 2.5066282746310002
NEVER = 1e299  # an upper bound from here on is none
MIN_LOG_SCALE = -10.0  # times that are all the same have no scale
# standardised residuals of the extreme distribution are cut here: e^z would overrun
MAX_Z = 30.0
# of the log of the scale
BEND = {"normal": 2.0, "logistic": 1.4299560445654842, "extreme": 1.8236806608528794}


def whole(values: Floats) -> tuple[NDArray[np.int64], float]:
    """Numbers of at least 0 as integers whose sum fits 62 bits, and the unit of
    these.
    """
    top = float(values.max(initial=0.0))
    if top == 0.0:
        return np.zeros(len(values), np.int64), 1.0
    shift = 61 - int(np.frexp(top)[1]) - len(values).bit_length()
    return np.rint(np.ldexp(values, shift)).astype(np.int64), float(
        np.ldexp(1.0, -shift)
    )


class Cox:
    """Cox's partial likelihood; the score is the log of the hazard relative to the
    baseline.

    Labels are (n_rows, 2) times and events, or (n_rows, 3) with times of entry. Of tied
    times, `ties` is 'efron' or 'breslow'.
    """

    # no metric of rows: see sapwood.metric.concordance
    name = "cox"
    metric = "rmse"
    n_outputs = 1

    def __init__(self, ties: str = "efron") -> None:
        if ties not in ("efron", "breslow"):
            raise ParameterError(
                f"ties={ties!r} is unknown; choose 'efron' or 'breslow'."
            )
        self.ties = ties

    def grad_hess(
        self, y: Floats, score: Floats, weight: Floats | None
    ) -> tuple[Floats, Floats]:
        """Gradient of the negative log likelihood; the hessian is a bound of its
        diagonal, without squares.
        """
        share = np.ones(len(y)) if weight is None else weight
        v, before, at, own, _, _ = self._risk(y, score, share)
        event = (y[:, 1] > 0).astype(np.float64)
        entered: Any = 0.0
        if y.shape[1] > 2:  # events up to the time of entry were not risked
            times = np.unique(y[:, 0])
            entered = np.append(0.0, before + at)[
                np.searchsorted(times, y[:, 2], side="right")
            ]
        place = np.unique(y[:, 0], return_inverse=True)[1]
        risk = before[place] + np.where(event > 0, own[place], at[place]) - entered
        h = v * np.maximum(risk, 0.0)
        return h - share * event, np.where(h > 0, h, 1e-12)

    def loss(self, y: Floats, score: Floats, weight: Floats | None = None) -> float:
        """The negative log of the partial likelihood."""
        share = np.ones(len(y)) if weight is None else weight
        *_, pieces, top = self._risk(y, score, share)
        event = (y[:, 1] > 0) & (share > 0)
        return float(pieces + top * share[event].sum() - (share * score)[event].sum())

    def baseline(
        self, y: Floats, score: Floats, weight: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Distinct times and the cumulative baseline hazard at each (Breslow's, or
        Efron's).
        """
        share = np.ones(len(y)) if weight is None else weight
        _, before, at, _, _, top = self._risk(y, score, share)
        return np.unique(y[:, 0]), (before + at) * float(elementary.exp(-top))

    def _risk(self, y: Floats, score: Floats, share: Floats) -> tuple[Any, ...]:
        """By distinct time: sums of 1 / risk before it, at it for others, at it for its
        own events.
        """
        top = float(score.max())
        v = share * elementary.exp(score - top)
        counts, unit = whole(v)
        times, place = np.unique(y[:, 0], return_inverse=True)
        at_risk = np.cumsum(_sums(counts, place, len(times))[::-1])[::-1]
        if y.shape[1] > 2:
            # the first time after the entry
            late = np.searchsorted(times, y[:, 2], side="right")
            kept = late > 0
            entry = _sums(counts[kept], late[kept] - 1, len(times))
            at_risk = at_risk - np.cumsum(entry[::-1])[::-1]
        event = (y[:, 1] > 0) & (share > 0)
        dead = np.bincount(place[event], minlength=len(times))
        weights, weight_unit = whole(share)
        mass = _sums(weights[event], place[event], len(times)) * weight_unit
        own_risk = _sums(counts[event], place[event], len(times)) * unit
        total = at_risk * unit
        block = np.repeat(np.arange(len(times)), dead)
        turn = np.arange(len(block)) - np.repeat(np.cumsum(dead) - dead, dead)
        part = turn / dead[block] if self.ties == "efron" else np.zeros(len(block))
        rest = total[block] - part * own_risk[block]
        each = mass[block] / dead[block]
        at = np.bincount(block, each / rest, len(times))
        own = np.bincount(block, each * (1.0 - part) / rest, len(times))
        before = np.cumsum(at) - at
        pieces = float((each * elementary.log(rest)).sum()) if len(block) else 0.0
        return v, before, at, own, pieces, top


class Aft:
    """Accelerated failure time: log T = score + scale * Z, with Z of `dist`; the scale
    is learned with the scores.

    Labels are (n_rows, 2) bounds of the time: equal where it is known, (lower, inf)
    where it is censored on the right, (0, upper) on the left.
    """

    name = "aft"
    link = "exp"
    metric = "rmse"
    n_outputs = 1

    def __init__(self, dist: str = "logistic") -> None:
        if dist not in BEND:
            raise ParameterError(
                f"dist={dist!r} is unknown; choose one of {', '.join(BEND)}."
            )
        self.dist = dist
        self.log_scale = 0.0

    @property
    def scale(self) -> float:
        """The scale of Z."""
        return float(elementary.exp(self.log_scale))

    def start(self, y: Floats, weight: Floats | None) -> float:
        """The score and the scale that fit all rows best."""
        low = np.maximum(y[:, 0], 1e-300)
        high = y[:, 1]
        middle = elementary.log(
            np.where(
                (high < NEVER) & (y[:, 0] > 0),
                (low + high) / 2,
                np.where((high < NEVER), high, low),
            )
        )
        share = np.ones(len(y)) if weight is None else weight
        score = float(np.median(middle))
        self.log_scale = 0.0
        total_weight = _total(share)
        for _ in range(100):
            _, g, h, slope = self._terms(y, np.full(len(y), score))
            score -= _signed_total(share * g) / _signed_total(share * h)
            step = float(
                np.clip(
                    _signed_total(share * slope) / (BEND[self.dist] * total_weight),
                    -0.5,
                    0.5,
                )
            )
            self.log_scale = max(self.log_scale - step, MIN_LOG_SCALE)
        return score

    def grad_hess(
        self, y: Floats, score: Floats, weight: Floats | None
    ) -> tuple[Floats, Floats]:
        """Gradient and hessian at the scale of the round; then the scale takes one
        step.
        """
        share = np.ones(len(y)) if weight is None else weight
        _, g, h, slope = self._terms(y, score)
        step = _signed_total(share * slope) / (BEND[self.dist] * _total(share))
        self.log_scale = max(
            self.log_scale - 0.1 * float(np.clip(step, -1.0, 1.0)), MIN_LOG_SCALE
        )
        return share * g, share * h

    def loss(self, y: Floats, score: Floats) -> Floats:
        """The negative log likelihood of each row."""
        return self._terms(y, score)[0]

    def survival(self, score: Floats, times: Floats) -> Floats:
        """(n_rows, n_times) probabilities of living longer."""
        z = (elementary.log(np.maximum(times, 1e-300)) - score[:, None]) / self.scale
        return np.asarray(1.0 - self._cdf(z))

    def quantile(self, score: Floats, level: float) -> Floats:
        """The time that a share `level` of rows like these does not outlive."""
        if self.dist == "logistic":
            z = float(elementary.log(level / (1 - level)))
        elif self.dist == "extreme":
            z = float(elementary.log(-elementary.log1p(-level)))
        else:
            # which imports this module
            from sapwood.objective.distributions.special import normal_quantile

            z = float(normal_quantile(np.array(level)))
        return np.asarray(elementary.exp(score + self.scale * z))

    def _cdf(self, z: Floats) -> Floats:
        if self.dist == "logistic":
            return np.asarray(elementary.sigmoid(z))
        if self.dist == "extreme":
            return np.asarray(-elementary.expm1(-elementary.exp(np.minimum(z, MAX_Z))))
        return normal_cdf(z)

    def _density(self, z: Floats) -> tuple[Floats, Floats]:
        """The density, and the derivative of its logarithm."""
        if self.dist == "logistic":
            p = elementary.sigmoid(z)
            return p * (1.0 - p), 1.0 - 2.0 * p
        if self.dist == "extreme":
            w = elementary.exp(np.minimum(z, MAX_Z))
            return w * elementary.exp(-w), 1.0 - w
        return elementary.exp(-0.5 * z * z) / ROOT_TWO_PI, -z

    def _terms(self, y: Floats, score: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Loss, its derivatives in the score, and that in the log of the scale."""
        scale = self.scale
        low = y[:, 0]
        high = y[:, 1]
        with np.errstate(divide="ignore", over="ignore"):
            zl = np.where(
                low > 0,
                (elementary.log(np.maximum(low, 1e-300)) - score) / scale,
                -40.0,
            )
            zu = np.where(
                (high < NEVER),
                (elementary.log(np.maximum(high, 1e-300)) - score) / scale,
                40.0,
            )
        zl = np.clip(zl, -40.0, 40.0)
        zu = np.clip(zu, -40.0, 40.0)
        exact = low == high
        f, slope = self._density(zl)
        # a time that is known
        known_g = slope / scale
        if self.dist == "normal":
            known_h = np.full(len(y), 1.0 / scale**2)
        elif self.dist == "logistic":
            known_h = 2.0 * f / scale**2
        else:
            known_h = (1.0 - slope) / scale**2
        with np.errstate(divide="ignore", invalid="ignore"):
            known_loss = (
                -elementary.log(np.maximum(f, 1e-300))
                + self.log_scale
                + elementary.log(np.maximum(low, 1e-300))
            )
        known_s = 1.0 + zl * slope
        # a time between bounds
        fl = np.where(low > 0, f, 0.0)
        fu = np.where((high < NEVER), self._density(zu)[0], 0.0)
        dl = np.where(low > 0, slope, 0.0)
        du = np.where((high < NEVER), self._density(zu)[1], 0.0)
        mass = np.where((high < NEVER), self._cdf(zu), 1.0) - np.where(
            low > 0, self._cdf(zl), 0.0
        )
        tail = ~(high < NEVER)  # without the difference of two numbers near 1
        mass = np.where(tail, self._upper(zl), mass)
        mass = np.maximum(mass, 1e-300)
        g = (fu - fl) / (scale * mass)
        h = g * g - (fu * du - fl * dl) / (scale * scale * mass)
        s = (zu * fu - zl * fl) / mass
        far = np.abs(g) > 1e3  # beyond what numbers hold: the limits of the tails
        g = np.where(far, known_g, g)
        h = np.where(far, known_h, h)
        s = np.where(far, known_s, s)
        loss = np.where(exact, known_loss, -elementary.log(mass))
        h = np.where(exact, known_h, h)
        return (
            loss,
            np.where(exact, known_g, g),
            np.maximum(h, 1e-6),
            np.where(exact, known_s, s),
        )

    def _upper(self, z: Floats) -> Floats:
        if self.dist == "logistic":
            return np.asarray(elementary.sigmoid(-z))
        if self.dist == "extreme":
            return np.asarray(elementary.exp(-elementary.exp(np.minimum(z, MAX_Z))))
        return normal_cdf(-z)


class Hazard:
    """Piecewise constant hazards: the log of the hazard of an interval of time is one
    score of the row, which all intervals share, plus `departure` times a score of the
    interval.

    A departure below 1 shrinks what intervals have of their own: a penalty of
    reg_lambda / departure^2 on it. Labels
    are (n_rows, 3): times of entry, times, events. ``edges``: ascending, the first 0.
    """

    name = "hazard"
    metric = "rmse"

    def __init__(self, edges: Floats, departure: float = 0.1) -> None:
        self.edges = edges
        self.departure = departure
        self.n_intervals = len(edges) - 1
        self.n_outputs = self.n_intervals + 1 if self.n_intervals > 1 else 1
        self._of: tuple[Any, ...] = (None,)

    def exposures(self, y: Floats) -> tuple[Floats, Floats]:
        """(n_intervals, n_rows) time at risk in each interval, and events in it."""
        low = self.edges[:-1, None]
        high = self.edges[1:, None]
        at_risk = np.clip(
            np.minimum(y[:, 1], high) - np.maximum(y[:, 0], low), 0.0, None
        )
        place = np.clip(
            np.searchsorted(self.edges, y[:, 1], side="left") - 1,
            0,
            self.n_intervals - 1,
        )
        events = np.zeros_like(at_risk)
        events[place, np.arange(len(y))] = y[:, 2] > 0
        return at_risk, events

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The logs of the hazards of all rows; half an event where there is none."""
        at_risk, events = self.exposures(y)
        share = np.ones(len(y)) if weight is None else weight
        sums = [[_total(share * one) for one in part] for part in (events, at_risk)]
        found = np.asarray(
            elementary.log(np.maximum(sums[0], 0.5) / np.maximum(sums[1], 1e-300))
        )
        return np.append(0.0, found / self.departure) if self.n_outputs > 1 else found

    def rates(self, score: Floats) -> Floats:
        """(n_intervals, n_rows) hazards."""
        planes = score.reshape(len(score), self.n_outputs).T
        if self.n_outputs > 1:
            common = planes[0]
            planes = planes[1:] * self.departure
            planes += common
        return np.asarray(elementary.exp(planes))

    def grad_hess(self, y: Floats, score: Floats) -> tuple[Floats, Floats]:
        """Those of a Poisson likelihood: hazard * time at risk - events."""
        if self._of[0] is not y:
            self._of = (y, *self.exposures(y))
        _, at_risk, events = self._of
        h = self.rates(score)
        h *= at_risk
        g = h - events
        if self.n_outputs == 1:
            return (g.T, h.T) if score.ndim == 2 else (g[0], h[0])
        # planes of scores lie together, as in the core
        found = np.empty((2, self.n_outputs, len(y)))
        for part, own, factor in zip(
            found, (g, h), (self.departure, self.departure**2), strict=True
        ):
            part[0] = _sum_of_planes(own)
            np.multiply(own, factor, out=part[1:])
        return found[0].T, found[1].T

    def loss(self, y: Floats, score: Floats) -> Floats:
        """The negative log likelihood of each row."""
        at_risk, events = self.exposures(y)
        rate = self.rates(score)
        return _sum_of_planes(rate * at_risk - events * elementary.log(rate))

    def cumulative(self, score: Floats, times: Floats) -> Floats:
        """(n_rows, n_times) cumulative hazards; after the last edge they rise no
        more.
        """
        rate = self.rates(score)
        spent = np.clip(
            np.minimum(times[:, None], self.edges[1:]) - self.edges[:-1], 0.0, None
        )
        total = np.zeros((len(score), len(times)))
        # one after the other: no product of matrices, whose order machines choose
        for k in range(self.n_intervals):
            total = total + rate[k, :, None] * spent[None, :, k]
        return total


def edges_of(time: Floats, event: NDArray[np.bool_], n_intervals: int) -> Floats:
    """Edges of intervals with about as many events each, from 0 to the last time."""
    if not event.any():
        raise DataError(
            "no row has an event, so there is nothing to learn; check which rows are censored."
        )
    inner = np.quantile(
        time[event], np.arange(1, n_intervals) / n_intervals, method="lower"
    )
    inner = np.unique(inner[(inner > 0) & (inner < time.max())])
    return np.concatenate([[0.0], inner, [max(float(time.max()), 1e-300)]])


def normal_cdf(z: Floats) -> Floats:
    """The normal distribution function, by a series near 0 and a continued fraction in
    the tails.
    """
    a = np.abs(z)
    density = elementary.exp(-0.5 * a * a) / ROOT_TWO_PI
    near = np.minimum(a, 5.0)
    term = near.copy()
    total = near.copy()
    for k in range(1, 90):
        term = term * near * near / (2 * k + 1)
        total = total + term
    fraction = np.zeros_like(a)
    safe = np.maximum(a, 1.0)
    for k in range(80, 0, -1):
        fraction = k / (safe + fraction)
    upper = np.where(a > 2.5, density / (safe + fraction), 0.5 - density * total)
    return np.where(z < 0, upper, 1.0 - upper)


def _sums(
    values: NDArray[np.int64], place: NDArray[np.intp], n: int
) -> NDArray[np.int64]:
    """Sums of integers by place."""
    total = np.zeros(n, np.int64)
    np.add.at(total, place, values)
    return total


def _total(values: Floats) -> float:
    """A sum of numbers of at least 0 that does not depend on their order."""
    integers, unit = whole(values)
    return float(integers.sum()) * unit


def _signed_total(values: Floats) -> float:
    """A sum of numbers of any sign that does not depend on their order."""
    return _total(np.maximum(values, 0.0)) - _total(np.maximum(-values, 0.0))


def _sum_of_planes(values: Floats) -> Floats:
    """The sum over the first axis, one after the other: numpy's own order depends on
    the machine.
    """
    total: Floats = values[0].copy()
    for one in values[1:]:
        total += one
    return total
