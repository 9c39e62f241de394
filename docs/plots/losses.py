"""Draw the losses of docs/losses as the core computes them: python docs/plots/losses.py
(needs matplotlib).

In: nothing. Out: regression.svg, quantiles.svg, counts.svg and classes.svg beside this
file, the same bytes every time.
"""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from sapwood.device import host

Floats = NDArray[np.float64]
FOLDER = Path(__file__).resolve().parent
LOSS, GRADIENT, HESSIAN = range(3)  # what `evaluate` returns
NAMES = ("loss", "gradient", "hessian, or its bound")


def values(
    name: str, score: Floats, label: float, **fields: float
) -> tuple[Floats, Floats, Floats]:
    """Loss, gradient and hessian of an objective; fields that are not given have their
    defaults.
    """
    own = {
        field: default
        for field, (_, _, _, default, _) in host.objectives()[name]["fields"].items()
    }
    return host.evaluate(name, own | fields, score, np.full(len(score), label))


def draw(file: str, axes: Any) -> None:
    """Finish a figure and write it."""
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="x-small")
    axes[0].figure.savefig(FOLDER / file, metadata={"Date": None})


def panels(n: int) -> Any:
    """A row of axes."""
    return plt.subplots(1, n, figsize=(3.4 * n, 3.2), layout="constrained")[1]


def curves(
    axes: Any, at: Floats, names: dict[str, str], label: float, xlabel: str
) -> None:
    """Loss, gradient and hessian of several objectives, one panel each."""
    for what, axis in enumerate(axes):
        for name, style in names.items():
            axis.plot(at, values(name, at, label)[what], style, label=name)
        axis.set(title=NAMES[what], xlabel=xlabel)


def regression() -> None:
    axes = panels(3)
    at = np.linspace(-4, 4, 161)
    styles = {
        "squared_error": "-",
        "absolute_error": "-",
        "huber": "-",
        "log_cosh": "--",
        "fair": "-.",
    }
    curves(axes, at, styles, 0.0, "s - y")
    axes[LOSS].set_ylim(0, 5)
    axes[GRADIENT].set_ylim(-2, 2)
    axes[HESSIAN].set_ylim(0, 1.1)
    draw("regression.svg", axes)


def quantiles() -> None:
    axes = panels(2)
    at = np.linspace(-3, 3, 121)
    for axis, name in zip(axes, ("quantile", "expectile"), strict=True):
        for level in (0.1, 0.5, 0.9):
            loss = values(name, at, 0.0, **{f"{name}_alpha": level})[LOSS]
            axis.plot(at, loss, label=f"level {level}")
        axis.set(title=name, xlabel="s - y", ylim=(0, 3))
    draw("quantiles.svg", axes)


def counts() -> None:
    axes = panels(2)
    score = np.linspace(np.log(0.3), np.log(30), 161)
    ticks = (0.3, 1, 3, 10, 30)
    for axis, label in zip(axes, (1.0, 5.0), strict=True):
        for name, style in {
            "poisson": "-",
            "tweedie": "--",
            "gamma": "-.",
            "squared_log": ":",
        }.items():
            # the score of the same prediction
            at = np.log1p(np.exp(score)) if name == "squared_log" else score
            loss = values(name, at, label)[LOSS]
            axis.plot(np.exp(score), loss - loss.min(), style, label=name)
        axis.set(
            title=f"loss above its least, y = {label:g}",
            xlabel="prediction",
            xscale="log",
            ylim=(0, 3),
        )
        # numbers in place of powers of ten
        axis.set_xticks(ticks, [f"{one:g}" for one in ticks])
        axis.minorticks_off()
    draw("counts.svg", axes)


def classes() -> None:
    axes = panels(3)
    at = np.linspace(-3, 4, 141)
    styles = {"logistic": "-", "exponential": "-", "hinge": "-", "focal": "--"}
    curves(axes, at, styles, 1.0, "score of a row with y = 1")
    axes[LOSS].set_ylim(0, 5)
    axes[GRADIENT].set_ylim(-3, 0.2)
    axes[HESSIAN].set_ylim(0, 1.6)
    draw("classes.svg", axes)


if __name__ == "__main__":
    # the same ids, and so the same file, every time
    plt.rcParams["svg.hashsalt"] = "sapwood"
    for family in (regression, quantiles, counts, classes):
        family()
