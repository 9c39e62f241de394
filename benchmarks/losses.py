"""Two tables of docs/losses: the learning rate of count losses on small data, and what
leaf rules cost.

    python benchmarks/losses.py            both; the second is CPU time, best of --turns
    python benchmarks/losses.py --only rates --rows 500

In: made-up labels with the mean of Friedman's function. Out: deviances relative to
LightGBM's, factors of time.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.datasets import make_friedman1

import sapwood

Array = NDArray[np.float64]
# of small data
DRAWS = 6
FEW = 1_000
NEW = 3_000
POWER = 1.5


def tweedie(rng: np.random.Generator, mean: Array) -> Array:
    """Compound Poisson and gamma numbers of dispersion 1: variance = mean^1.5, a heap
    of zeros.
    """
    return rng.gamma(rng.poisson(2 * np.sqrt(mean)), 0.5 * np.sqrt(mean))


LOSSES: dict[
    str, tuple[Callable[[np.random.Generator, Array], Array], Callable[..., float]]
] = {
    "poisson": (
        lambda rng, mean: rng.poisson(mean).astype(np.float64),
        metrics.mean_poisson_deviance,
    ),
    "tweedie": (tweedie, partial(metrics.mean_tweedie_deviance, power=POWER)),
    "gamma": (
        lambda rng, mean: rng.gamma(2.0, mean / 2.0),
        metrics.mean_gamma_deviance,
    ),
}
RULES: tuple[dict[str, Any], ...] = (
    {"leaf_iterations": 5},
    {"leaf_estimation": "exact"},
    {"line_search": "tree"},
    {"hessian": "none"},
)


def deviances(name: str, scale: float, rate: float, seen: int) -> float:
    """Ours over LightGBM's on unseen rows, the geometric mean of some draws; all
    defaults but our rate.
    """
    import lightgbm

    draw, measure = LOSSES[name]
    ratios = []
    for seed in range(DRAWS):
        X, mean = make_friedman1(seen + NEW, noise=0.0, random_state=seed)
        y = draw(np.random.default_rng(seed), scale * mean)
        ours = sapwood.train(
            {"objective": name, "learning_rate": rate},
            sapwood.Dataset(X[:seen], y[:seen]),
        )
        data = lightgbm.Dataset(X[:seen], y[:seen])
        theirs = lightgbm.train(
            {"objective": name, "verbose": -1, "num_threads": 1}, data
        )
        predicted = [one.predict(X[seen:]) for one in (ours, theirs)]
        ratios.append(measure(y[seen:], predicted[0]) / measure(y[seen:], predicted[1]))
    return float(np.exp(np.log(ratios).mean()))


def seconds(objective: str, rule: dict[str, Any], rows: int) -> float:
    """CPU time of 30 rounds of 31 leaves, one thread."""
    X, mean = make_friedman1(rows, n_features=20, noise=1.0, random_state=0)
    y = {
        "squared_error": mean,
        "logistic": mean > 14,
        "poisson": np.random.default_rng(0).poisson(np.abs(mean)),
    }
    data = sapwood.Dataset(X, np.asarray(y[objective], np.float64))
    params = {
        "objective": objective,
        "n_estimators": 30,
        "max_leaves": 31,
        "path_smooth": 0.0,
        "n_jobs": 1,
        **rule,
    }
    start = time.process_time()
    sapwood.train(params, data)
    return time.process_time() - start


def main() -> None:
    """Print the tables as the pages have them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=["rates", "rules"])
    parser.add_argument(
        "--rows",
        type=int,
        default=100_000,
        help=f"of the second; the first has {FEW} at most",
    )
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    few = min(args.rows, FEW)
    if args.only != "rules":
        print("| | `learning_rate=0.1` | `0.05` |\n|---|---|---|")
        for name in LOSSES:
            ratios = [
                [deviances(name, scale, rate, few) for scale in (1.0, 0.1)]
                for rate in (0.1, 0.05)
            ]
            cells = [
                ", ".join(f"{ratio:.2f}" for ratio in of_rate) for of_rate in ratios
            ]
            print(f"| `{name}` | {' | '.join(cells)} |")
    if args.only != "rates":
        objectives = ("squared_error", "logistic", "poisson")
        print(
            f"| | {' | '.join(f'`{name}`' for name in objectives)} |\n|---|---|---|---|"
        )
        turns = [
            {
                (name, str(rule)): seconds(name, rule, args.rows)
                for name in objectives
                for rule in ({}, *RULES)
            }
            for _ in range(args.turns)
        ]
        best = {key: min(turn[key] for turn in turns) for key in turns[0]}
        for rule in RULES:
            cells = [
                f"{best[name, str(rule)] / best[name, '{}']:.1f}" for name in objectives
            ]
            ((parameter, value),) = rule.items()
            print(
                f"| `{parameter}={value!r}` | {' | '.join(cells)} |".replace("'", '"')
            )


if __name__ == "__main__":
    main()
