"""What survival analysis has learned of one cause, beside trees: how scores become
curves, and the same as JSON.

In: a booster and a loss, or a model file. Out: cumulative hazards.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.device import elementary
from sapwood.errors import ModelFormatError, SapwoodError
from sapwood.interfaces.kinds import SURVIVAL
from sapwood.model.booster import Booster
from sapwood.model.io import load
from sapwood.objective.survival import Aft, Cox, Hazard

Floats = NDArray[np.float64]
MODELS = ("hazard", "cox", "aft")


@dataclass(frozen=True)
class Curve:
    """A curve of one row, as scikit-survival's step functions: call it with times."""

    x: Floats  # times of events in training
    y: Floats  # the curve at these
    at: Callable[[Floats], Floats]

    def __call__(self, times: Any) -> Any:
        """The curve at one time, or at each of several."""
        found = self.at(np.atleast_1d(np.asarray(times, np.float64)))
        return found if np.ndim(times) else float(found[0])


@dataclass(frozen=True)
class Learned:
    """What was learned of one cause: a model, and how its scores become cumulative
    hazards.
    """

    booster: Booster
    goal: Any  # Cox, Aft or Hazard
    # Cox: distinct times; hazard: ends of intervals; between two of them nothing
    # changes but a line
    grid: Floats
    baseline: Floats  # Cox: the cumulative hazard at each

    def cumulative(self, score: Floats, at: Floats) -> Floats:
        """(n_rows, n_times) cumulative hazards."""
        if isinstance(self.goal, Hazard):
            return self.goal.cumulative(score, at)
        if isinstance(self.goal, Cox):
            base = np.append(0.0, self.baseline)[
                np.searchsorted(self.grid, at, side="right")
            ]
            return np.asarray(elementary.exp(score)[:, None] * base)
        return np.asarray(
            -elementary.log(np.maximum(self.goal.survival(score, at), 1e-300))
        )

    def constants(self) -> dict[str, Any]:
        """All but the trees, as JSON has it."""
        if isinstance(self.goal, Hazard):
            return {
                "edges": self.goal.edges.tolist(),
                "departure": float(self.goal.departure),
            }
        if isinstance(self.goal, Cox):
            return {
                "ties": self.goal.ties,
                "grid": self.grid.tolist(),
                "baseline": self.baseline.tolist(),
            }
        return {"dist": self.goal.dist, "log_scale": float(self.goal.log_scale)}


def with_constants(
    learned: Sequence[Learned], causes: Sequence[int], event_times: Floats
) -> list[Learned]:
    """The same, with all of it in `params` of the boosters; that of the first has those
    of the other causes too.
    """
    kept: list[Learned] = []
    for one, cause in zip(learned[::-1], causes[::-1], strict=True):
        about = {
            "model": one.goal.name,
            "cause": int(cause),
            "event_times": event_times.tolist(),
            **one.constants(),
        }
        if len(kept) == len(learned) - 1:
            about["others"] = [
                base64.b64encode(other.booster.to_bytes()).decode()
                for other in kept[::-1]
            ]
        kept.append(
            replace(
                one,
                booster=replace(
                    one.booster, params={**one.booster.params, SURVIVAL: about}
                ),
            )
        )
    return kept[::-1]


def of_file(booster: Booster) -> tuple[list[Learned], list[int], Floats]:
    """What was learned of each cause, their numbers, and times of events, of a model
    file; raises where it is wrong.
    """
    about = booster.params[SURVIVAL]
    try:
        others = [
            load(base64.b64decode(one, validate=True))
            for one in about.get("others", [])
        ]
        found = [_learned(one) for one in (booster, *others)]
        causes = [int(one.params[SURVIVAL]["cause"]) for one in (booster, *others)]
        times = _ascending(about["event_times"])
        if len({type(one.goal) for one in found}) > 1 or sorted({*causes}) != causes:
            raise ValueError("models of several causes do not go together")
    except SapwoodError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as cause:
        raise ModelFormatError(
            f"'{SURVIVAL}' of the file does not describe curves: {cause!r}."
        ) from cause
    return found, causes, times


def _learned(booster: Booster) -> Learned:
    """One cause of a model file."""
    about: Mapping[str, Any] = booster.params[SURVIVAL]
    goal: Any = None
    grid = baseline = np.zeros(0)
    if about["model"] == "hazard":
        edges = _ascending(about["edges"])
        departure = float(about["departure"])
        if len(edges) < 2 or edges[0] != 0 or not 0 < departure < np.inf:
            raise ValueError("edges do not begin with 0, or a departure is not above 0")
        goal = Hazard(edges, departure)
        grid = edges[1:]
    elif about["model"] == "cox":
        goal = Cox(about["ties"])
        grid = _ascending(about["grid"])
        baseline = np.array(about["baseline"], np.float64)
        if (
            baseline.shape != grid.shape
            or not (np.diff(baseline, prepend=0.0) >= 0).all()
            or not len(grid)
        ):
            raise ValueError(
                "the baseline hazard falls, or has another number of times"
            )
    elif about["model"] == "aft":
        goal = Aft(about["dist"])
        goal.log_scale = float(about["log_scale"])
        if not np.isfinite(goal.log_scale):
            raise ValueError("log_scale is not finite")
    if goal is None or booster.n_outputs != goal.n_outputs:
        raise ValueError(
            f"a model {about['model']!r} has not {booster.n_outputs} outputs"
        )
    return Learned(booster, goal, grid, baseline)


def _ascending(values: Any) -> Floats:
    """Finite numbers of at least 0, each above the one before."""
    found = np.array(values, np.float64)
    if (
        found.ndim != 1
        or not np.isfinite(found).all()
        or not (np.diff(found) > 0).all()
        or (found < 0).any()
    ):
        raise ValueError("a list of times does not rise, or is not finite")
    return found
