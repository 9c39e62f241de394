"""Draw the pictures of the pages on tasks: python docs/plots/tasks.py (needs
matplotlib).

In: nothing. Out: distributions.svg, intervals.svg, survival.svg, ranking.svg and
text.svg beside this file.
"""

import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sapwood import (
    SapwoodClassifier,
    SapwoodDistribution,
    SapwoodRanker,
    SapwoodRegressor,
    SapwoodSurvival,
    metric,
)

FOLDER = Path(__file__).resolve().parent
plt.rcParams["svg.hashsalt"] = "sapwood"  # the same ids in every run


def axes(title: str, xlabel: str, ylabel: str) -> Any:
    """One panel."""
    axis = plt.subplots(figsize=(6.4, 3.2), layout="constrained")[1]
    axis.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axis.grid(alpha=0.3)
    return axis


def write(axis: Any, name: str) -> None:
    """Finish a figure and write it."""
    axis.legend(fontsize="x-small")
    axis.figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


def distributions() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-1, 1, 1200))
    y = np.sin(3 * x) + np.exp(1.5 * x - 1) * rng.normal(size=1200)
    grid = np.linspace(-1, 1, 200)[:, None]
    dist = SapwoodDistribution("normal").fit(x[:, None], y).predict_dist(grid)
    axis = axes("SapwoodDistribution: mean and intervals", "x", "y")
    axis.plot(x[::3], y[::3], ".", color="0.6", ms=2, label="labels")
    for coverage, alpha in ((0.9, 0.2), (0.5, 0.35)):
        low, high = dist.interval(coverage).T
        axis.fill_between(
            grid[:, 0],
            low,
            high,
            color="C2",
            alpha=alpha,
            lw=0,
            label=f"{coverage:.0%} interval",
        )
    axis.plot(grid[:, 0], dist.mean(), "C2", label="mean")
    write(axis, "distributions")


def intervals() -> None:
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(-1, 1, 1200))
    y = np.sin(3 * x) + (0.1 + x * x) * rng.normal(size=1200)
    grid = np.linspace(-1, 1, 200)[:, None]
    levels = [0.05, 0.5, 0.95]
    model = SapwoodRegressor(
        quantiles=levels, conformal="split", n_estimators=100, random_state=0
    )
    model.fit(x[:, None], y)
    axis = axes("Three quantiles, and the conformal interval of 90 %", "x", "y")
    axis.plot(x[::3], y[::3], ".", color="0.6", ms=2, label="labels")
    low, high = model.interval(grid, 0.9).T
    axis.fill_between(
        grid[:, 0], low, high, color="C0", alpha=0.2, lw=0, label="interval"
    )
    for level, column in zip(levels, model.predict(grid).T, strict=True):
        axis.plot(grid[:, 0], column, lw=1, label=f"quantile {level:g}")
    write(axis, "intervals")


def survival() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 3))
    time = rng.exponential(np.exp(1 - X[:, 0]))
    censored = rng.exponential(5, 1500)
    model = SapwoodSurvival(n_estimators=60).fit(
        X, (np.minimum(time, censored), time <= censored)
    )
    axis = axes("Survival curves of three rows", "time", "probability of living longer")
    times = np.linspace(0, 10, 200)
    rows = np.array([[-1.0, 0, 0], [0.0, 0, 0], [1.0, 0, 0]])
    for row, curve in zip(
        rows, model.predict_survival_function(rows, times), strict=True
    ):
        (line,) = axis.plot(times, curve, label=f"x = {row[0]:g}")
        axis.plot(
            times,
            np.exp(-times / np.exp(1 - row[0])),
            "--",
            lw=0.8,
            color=line.get_color(),
        )
    axis.plot([], [], "k--", lw=0.8, label="the truth")
    write(axis, "survival")


def ranking() -> None:
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(200), 15)
    X = rng.normal(size=(3000, 6))
    y = np.clip(np.floor(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=3000) + 1), 0, 4)
    train = group < 150
    held = group >= 150
    axis = axes("NDCG of the first 10 places, groups held out", "rounds", "NDCG@10")
    for objective in ("lambdarank", "rank_xendcg", "query_rmse", "pair_logit"):
        model = SapwoodRanker(objective=objective, n_estimators=60).fit(
            X[train], y[train], group=group[train]
        )
        values = [
            metric.ndcg(y[held], score, group=group[held])
            for score in model.booster_.staged_predict(X[held], raw=True)
        ]
        axis.plot(range(1, len(values) + 1), values, label=objective)
    write(axis, "ranking")


def text() -> None:
    rng = np.random.default_rng(4)
    liked = rng.integers(0, 2, 1600)
    common = [f"word{i}" for i in range(300)]
    rare = [f"{kind}{i}" for kind in ("good", "bad") for i in range(150)]
    own = np.where(liked == 1, 0, 150) + rng.integers(0, 150, 1600)
    table = pd.DataFrame(
        {
            "review": [" ".join([*rng.choice(common, 6), rare[j]]) for j in own],
            "x": rng.normal(size=1600),
        }
    )
    axis = axes(
        "300 rare words tell the class: rows held out", "training rows", "accuracy"
    )
    sizes = (150, 300, 600, 1200)
    for wanted, name in (
        ("auto", "text_features='auto'"),
        (None, "text_features=None"),
    ):
        values = []
        for n in sizes:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = SapwoodClassifier(n_estimators=40, text_features=wanted).fit(
                    table[:n], liked[:n]
                )
            values.append(model.score(table[1200:], liked[1200:]))
        axis.plot(sizes, values, "o-", label=name)
    write(axis, "text")


if __name__ == "__main__":
    for draw in (distributions, intervals, survival, ranking, text):
        draw()
