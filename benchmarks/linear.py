"""Linear leaves against constant ones and against LightGBM's: fits and predictions,
taking turns.

    python benchmarks/linear.py [--rows 300000] [--rounds 30] [--turns 3]

In: nothing. Out: processor seconds of one thread for data, fit and prediction, the mean
squared error on fresh rows, and each divided by that of LightGBM's linear trees.
"""

import argparse
import time
from collections.abc import Callable

import lightgbm
import numpy as np

import sapwood

COLUMNS = 28
RATE = 0.1
Run = tuple[float, float, float, float]  # seconds of data, fit, prediction; error


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of five of the columns, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, COLUMNS)).astype(np.float32)
    smooth = (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
    )
    return X, smooth.astype(np.float64) + rng.normal(size=n)


def main() -> None:
    """Run the race."""
    parser = argparse.ArgumentParser()
    for name, default in (("rows", 300_000), ("rounds", 30), ("turns", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    (X, y), (fresh, truth) = rows(args.rows, 0), rows(100_000, 1)

    def timed(
        data: Callable[[], object],
        fit: Callable[[object], object],
        predict: Callable[..., np.ndarray],
    ) -> Run:
        at = [time.process_time()]
        made = data()
        at.append(time.process_time())
        model = fit(made)
        at.append(time.process_time())
        predicted = predict(model)
        at.append(time.process_time())
        data_s, fit_s, predict_s = np.diff(at).tolist()
        return data_s, fit_s, predict_s, float(np.mean((predicted - truth) ** 2))

    def ours(linear: bool) -> Run:
        params = {"n_estimators": args.rounds, "learning_rate": RATE, "n_jobs": 1}
        return timed(
            lambda: sapwood.Dataset(X, y, linear_leaves=linear, n_jobs=1),
            lambda data: sapwood.train(params, data),  # type: ignore[arg-type]
            lambda model: model.predict(fresh, n_jobs=1),
        )

    def theirs(linear: bool) -> Run:
        params = {
            "learning_rate": RATE,
            "num_threads": 1,
            "linear_tree": linear,
            "verbose": -1,
        }
        return timed(
            lambda: lightgbm.Dataset(X, y, params=params).construct(),
            lambda data: lightgbm.train(params, data, args.rounds),  # type: ignore[arg-type]
            lambda model: model.predict(fresh, num_threads=1),
        )

    runners = {"sapwood": (ours, False), "sapwood linear": (ours, True)}
    runners |= {"lightgbm": (theirs, False), "lightgbm linear": (theirs, True)}
    best = {name: np.full(4, np.inf) for name in runners}
    for _ in range(args.turns):
        for name, (run, linear) in runners.items():
            best[name] = np.minimum(best[name], run(linear))
    print(f"{'':16}{'data s':>9}{'fit s':>9}{'predict s':>11}{'error':>9}   ratios")
    for name, (data_s, fit_s, predict_s, error) in best.items():
        ratios = " ".join(
            f"{ratio:6.3f}" for ratio in best[name] / best["lightgbm linear"]
        )
        print(
            f"{name:16}{data_s:9.2f}{fit_s:9.2f}{predict_s:11.3f}{error:9.4f}   {ratios}"
        )


if __name__ == "__main__":
    main()
