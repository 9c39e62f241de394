"""A call of every metric; see `calls.py`. Importing this enters the calls into
`calls.CALLS`.
"""

import inspect
from typing import Any

import numpy as np

import sapwood as sw
from arguments import BINARY, COUNTS, GROUP, N_ROWS, SCORE, THREE, X
from calls import NAMED, call
from calls_of_models import EVENT, TIME, few

RNG = np.random.default_rng(11)
PROBABILITY = RNG.random(N_ROWS)
POSITIVE = np.exp(SCORE)
OTHER = np.exp(X[:, 1])
WEIGHTS = [np.arange(N_ROWS) + 0.5, np.ones(3)]
# one group has none
RELEVANCE = np.where(RNG.random(N_ROWS) < 0.2, RNG.integers(1, 4, N_ROWS), 0) * (
    GROUP != 4
)
OF_CLASSES = (
    "accuracy",
    "auc",
    "average_precision",
    "balanced_accuracy",
    "brier",
    "error",
    "f1",
    "kappa",
    "logloss",
    "mcc",
    "precision",
    "recall",
)
OF_RANKS = ("err", "map_at", "mrr", "ndcg", "precision_at", "recall_at")
CHANGED: dict[str, list[Any]] = {
    "weight": WEIGHTS,
    "threshold": [0.2],
    "alpha": [0.9],
    "delta": [0.1],
    "power": [1.2],
    "group": [GROUP // 2, [3]],
    "at": [1, 0],
    "ties": ["pessimistic", "x"],
    "top": [9.0],
}


def metrics() -> dict[str, Any]:
    """The metrics, by name."""
    return {
        name: function
        for name, function in vars(sw.metric).items()
        if inspect.isfunction(function)
        and name not in sw.metric.__all__
        and not name.startswith("_")
        and function.__module__.startswith("sapwood.metric")
    }


def enter(name: str, base: dict[str, Any], **changed: list[Any]) -> None:
    function = metrics()[name]
    given = inspect.signature(function).parameters
    call(
        f"metric.{name}",
        function,
        base,
        **{key: values for key, values in changed.items() if key in given},
    )


for name in metrics():
    if name in OF_CLASSES:
        rows = {"y": BINARY, "prediction": PROBABILITY, "weight": None}
        enter(
            name,
            rows,
            **CHANGED,
            y=[1 - BINARY, BINARY[1:]],
            prediction=[1 - PROBABILITY, PROBABILITY[1:]],
        )
    elif name in OF_RANKS:
        rows = {"y": RELEVANCE, "prediction": X[:, 3].round(), "group": GROUP, "at": 3}
        enter(
            name,
            rows,
            **CHANGED,
            convention=["sklearn", "x"],
            gain=["linear", "x"],
            empty=[1, "x"],
            y=[RELEVANCE[::-1], THREE[1:]],
            prediction=[SCORE, SCORE[1:]],
        )
    elif sw.metric.mae.__module__ == metrics()[name].__module__ and name != "mean":
        rows = {"y": POSITIVE, "prediction": OTHER, "weight": None}
        enter(
            name,
            rows,
            **CHANGED,
            y=[POSITIVE * 2, POSITIVE[1:]],
            prediction=[OTHER[::-1], OTHER[1:]],
        )
enter("mean", {"values": SCORE, "weight": None}, values=[X[:, 0]], weight=WEIGHTS)
# of which pit draws
COUNTED = few("SapwoodDistribution", dist="poisson", n_folds=0).fit(NAMED, COUNTS)
DIST = COUNTED.predict_dist(NAMED[:20])
LABEL = COUNTS[:20] + 9 * (np.arange(20) % 3 == 0)  # some beyond all intervals
LATER = COUNTED.predict_dist(NAMED[20:40])
for name in ("coverage", "crps", "nll", "pit"):
    enter(
        name,
        {"y": LABEL, "dist": DIST},
        y=[LABEL + 5, LABEL[1:]],
        dist=[LATER, 3],
        level=[0.3, 2],
        weight=[np.arange(20) + 0.5, np.ones(3)],
        seed=[3],
    )
TRAIN = (TIME[::2], EVENT[::2])
TIMES = np.quantile(TIME, [0.3, 0.6])
CURVES = np.column_stack([PROBABILITY, PROBABILITY / 2])
OF_TIMES: dict[str, list[Any]] = {
    "train": [(TIME, EVENT), 3],
    "time": [TIME[::-1], TIME[1:]],
    "event": [1 - EVENT, EVENT[1:]],
    "survival": [1 - CURVES, CURVES[1:]],
    "times": [TIMES * 1.2, [TIMES[0]]],
    "risk": [-SCORE, SCORE[1:]],
    "tau": [float(TIMES[1])],
    "reverse": [True],
}
BASE = {
    "train": TRAIN,
    "time": TIME,
    "event": EVENT,
    "survival": CURVES,
    "times": TIMES,
    "risk": OTHER,
}
for name in (
    "brier_survival",
    "concordance",
    "concordance_ipcw",
    "dynamic_auc",
    "integrated_brier",
    "kaplan_meier",
):
    needed = inspect.signature(metrics()[name]).parameters
    enter(
        name, {key: value for key, value in BASE.items() if key in needed}, **OF_TIMES
    )
