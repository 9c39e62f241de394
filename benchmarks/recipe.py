"""The recipe of CatBoost against CatBoost itself: loss and fit time at equal rounds, on
data with categories.

    python benchmarks/recipe.py --data FOLDER --keep FILE     twelve sets, five splits; what FILE has is not run again
    python benchmarks/recipe.py ... --kept PEERS.json         with losses of catboost-default that quality.py has kept
    python benchmarks/recipe.py ... --only sapwood:boosting=plain
    sapwood:boosting=ordered,n_permutations=1
                                                              variants of either, each
                                                              against the first

In: a folder as for quality.py. Out: a line of FILE for each fit, so that a run may be
broken off and goes on later;
for each data set the loss and fit time of every contender over those of the first, with
standard errors over splits. diabetes_readmission, for which CatBoost takes longer than
for all others together, is run only with --data-set.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import quality

SETS = [
    "german_credit",
    "employee_salaries",
    "ames",
    "telco_churn",
    "students",
    "diamonds",
    "heart",
    "adult",
    "motor_claims",
    "bank_marketing",
    "nyc_flights",
    "hotel_bookings",
]
Run = dict[str, Any]  # contender, data, seed, loss; seconds, cpu


def build(contender: str, task: str, cats: list[str], rounds: int, seed: int) -> Any:
    """An estimator of CatBoost as its constructor makes it, or of the recipe;
    parameters after the colon.
    """
    name, _, more = contender.partition(":")
    given = dict(one.split("=") for one in more.split(",") if one)
    params: Run = {
        key: json.loads(v) if v[:1] in "-0123456789" else v for key, v in given.items()
    }
    classify = task in ("binary", "multiclass")
    if name == "sapwood":
        import sapwood

        count: Run = {"objective": "poisson"} if task == "poisson" else {}
        params = (
            {"recipe": "catboost", "n_estimators": rounds, "random_state": seed}
            | count
            | params
        )
        return (sapwood.SapwoodClassifier if classify else sapwood.SapwoodRegressor)(
            **params
        )
    if name != "catboost":
        raise ValueError(
            f"contender {contender!r}: choose sapwood or catboost, parameters after a colon"
        )
    import catboost

    count = {"loss_function": "Poisson"} if task == "poisson" else {}
    params = (
        {"iterations": rounds, "random_seed": seed, "verbose": 0, "cat_features": cats}
        | count
        | params
    )
    params["allow_writing_files"] = False
    return (catboost.CatBoostClassifier if classify else catboost.CatBoostRegressor)(
        **params
    )


def child(
    folder: str, contender: str, data: str, seed: int, rounds: int, rows: int
) -> None:
    """Fit and predict once; print loss, seconds and processor seconds of the fit."""
    warnings.filterwarnings("ignore")
    X, y, Xt, yt = quality.load(folder, data, seed, rows or None)
    cats, task = (quality.index(folder)[data][what] for what in ("categorical", "task"))
    theirs = contender.startswith("catboost")
    if theirs:
        X = quality.as_text(X, cats)
        Xt = quality.as_text(Xt, cats)
    model = build(contender, task, cats, rounds, seed)
    wall = time.perf_counter()
    cpu = time.process_time()
    model.fit(X, y)
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    if task == "poisson" and theirs:
        out = model.predict(Xt, prediction_type="Exponent")
    else:
        out = (
            model.predict_proba(Xt)
            if task in ("binary", "multiclass")
            else model.predict(Xt)
        )
    print(
        json.dumps({"loss": quality.loss(task, yt, out), "seconds": wall, "cpu": cpu})
    )


def ratios(
    runs: dict[tuple[str, str, int], Run], ours: str, base: str, data: str, what: str
) -> np.ndarray:
    """Logarithms of one contender's figure over another's, for the splits that both
    have.
    """
    seeds = sorted(seed for name, of, seed in runs if name == ours and of == data)
    pairs = [
        (runs[ours, data, seed], runs.get((base, data, seed), {})) for seed in seeds
    ]
    return np.log(
        [
            mine[what] / other[what]
            for mine, other in pairs
            if what in mine and what in other
        ]
    )


def table(
    runs: dict[tuple[str, str, int], Run], only: list[str], sets: list[str]
) -> None:
    """Print each contender against the first: geometric means over splits, then over
    sets.
    """

    def mean(logs: Any) -> float:
        known = [one for one in logs if np.isfinite(one)]
        return float(np.mean(known)) if known else np.nan

    for ours in only[1:]:
        print(
            f"\n{ours} / {only[0]}\n{'':22}{'loss':>8}{'+-':>8}{'splits':>8}{'fit time':>10}{'cpu':>8}"
        )
        rows = []
        for data in sets:
            logs = [
                ratios(runs, ours, only[0], data, what)
                for what in ("loss", "seconds", "cpu")
            ]
            if len(logs[0]):
                error = (
                    logs[0].std(ddof=1) / len(logs[0]) ** 0.5
                    if len(logs[0]) > 1
                    else np.nan
                )
                times = [
                    np.nan if data == "diabetes_readmission" else mean(log)
                    for log in logs[1:]
                ]
                rows.append((mean(logs[0]), error, *times))
                line(data, rows[-1], str(len(logs[0])))
        if rows:
            loss, errors, seconds, cpu = zip(*rows, strict=True)
            # splits are drawn anew, sets are these
            error = float(np.sqrt(np.sum(np.square(errors)))) / len(rows)
            line("geometric mean", (mean(loss), error, mean(seconds), mean(cpu)), "")


def line(name: str, logs: tuple[float, ...], splits: str) -> None:
    """Print a row of the table; the error of a logarithm is that of the ratio,
    nearly.
    """
    loss, error, seconds, cpu = logs
    print(
        f"{name:22}{np.exp(loss):8.4f}{error:8.4f}{splits:>8}{np.exp(seconds):10.3f}{np.exp(cpu):8.3f}"
    )


def main() -> None:
    """Run what is missing, split after split, and compare."""
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:5], *map(int, sys.argv[5:]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", required=True, help="folder with the parquet files and index.json"
    )
    parser.add_argument("--keep", required=True, help="file with a line for each fit")
    parser.add_argument(
        "--kept", help="figures of quality.py; losses only, and only at its 1000 rounds"
    )
    parser.add_argument(
        "--only",
        nargs="*",
        default=["catboost", "sapwood"],
        help="contenders, the first is the base",
    )
    parser.add_argument("--data-set", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, nargs="*", default=list(range(5)))
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument(
        "--rows", type=int, default=0, help="of each data set; all by default"
    )
    parser.add_argument("--show", action="store_true", help="run nothing")
    args = parser.parse_args()
    keep = Path(args.keep)
    runs = {}
    if args.kept and args.rounds == 1000 and not args.rows:
        for data, by_seed in json.loads(Path(args.kept).read_text())[
            "catboost-default"
        ].items():
            runs |= {
                ("catboost", data, int(s)): {"loss": got["loss"]}
                for s, got in by_seed.items()
                if "loss" in got
            }
    for line in keep.read_text().splitlines() if keep.exists() else []:
        one = json.loads(line)
        if (one["rounds"], one.get("rows", 0)) == (args.rounds, args.rows):
            runs[one["contender"], one["data"], one["seed"]] = one
    wanted = [
        (name, data, seed)
        for seed in args.seeds
        for data in args.data_set
        for name in args.only
    ]
    for name, data, seed in [
        key for key in wanted if key not in runs and not args.show
    ]:
        numbers = map(str, (seed, args.rounds, args.rows))
        command = [sys.executable, __file__, "--child", args.data, name, data, *numbers]
        out = subprocess.run(command, capture_output=True, text=True, check=False)
        if out.returncode:
            print(
                f"{name} {data} seed {seed}: {(out.stderr.strip().splitlines() or ['died'])[-1]}",
                flush=True,
            )
            continue
        got = {
            "contender": name,
            "data": data,
            "seed": seed,
            "rounds": args.rounds,
            "rows": args.rows,
        }
        got |= json.loads(out.stdout)
        runs[name, data, seed] = got
        with keep.open("a") as file:
            file.write(json.dumps(got) + "\n")
        print(
            f"{name:32} {data:20} seed {seed}  {got['loss']:.5f}  {got['seconds']:.1f} s",
            flush=True,
        )
    table(runs, args.only, args.data_set)


if __name__ == "__main__":
    main()
