"""Tables that do not fit in memory: training from a store against training in memory,
and XGBoost's external memory.

In: nothing; rows are made up and written to a folder. Out: seconds and peak resident
memory of each, as a table.

``python benchmarks/streaming.py speed`` trains 1M x 28 rows in memory and from a store
that the page cache holds. ``python benchmarks/streaming.py size`` makes a folder of
Parquet files of at least 4 GB of numbers and trains on it with a memory_limit of a
quarter of that; XGBoost reads the same folder. Each runs in a process of its own.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 10
LEAVES = 63
PARAMS = {
    "objective": "logistic",
    "n_estimators": ROUNDS,
    "max_leaves": LEAVES,
    "verbose": 0,
}


def rows(n_columns: int, part: int, n: int) -> tuple[Any, Any]:
    """Made-up rows of a part, float32, and labels of two classes."""
    rng = np.random.default_rng(part)
    X = rng.standard_normal((n, n_columns), dtype=np.float32)
    y = (
        X[:, 0] * X[:, 1]
        + X[:, 2]
        + 0.5 * np.sin(3 * X[:, 3])
        + rng.standard_normal(n, dtype=np.float32)
        > 0
    )
    return X, y.astype(np.float64)


def make_folder(folder: Path, gigabytes: float, n_columns: int) -> int:
    """Write Parquet files of so many numbers; the bytes of the numbers."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    n_parts = max(1, round(gigabytes * 10))
    n = int(1e8 // (4 * n_columns)) + 1
    X, _ = rows(n_columns, 0, n)
    for part in range(n_parts):
        X *= np.float32(1 + part / 1000)  # other values in every part
        y = (
            X[:, 0] * X[:, 1] + X[:, 2] + np.random.default_rng(part).standard_normal(n)
            > 0
        ).astype(np.float64)
        columns = {f"f{j}": X[:, j] for j in range(n_columns)} | {"y": y}
        plain = {
            "compression": "none",
            "use_dictionary": False,
            "row_group_size": 1 << 16,
        }
        parquet.write_table(pa.table(columns), folder / f"{part:03}.parquet", **plain)
    return n_parts * n * n_columns * 4


def peak() -> int:
    """The largest resident memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000


def child(what: str, folder: Path, limit: int, n_jobs: int) -> dict[str, Any]:
    """One measurement, in its own process."""
    start = time.perf_counter()
    if what == "xgboost":
        return xgboost_external(folder, n_jobs)
    import sapwood

    if what == "memory":
        X, y = zip(*(rows(28, part, limit) for part in range(4)), strict=True)
        data = sapwood.Dataset(
            np.concatenate(X), label=np.concatenate(y), n_jobs=n_jobs
        )
        del X, y
    elif what == "opened":
        data = sapwood.Dataset.open(
            folder, memory_limit=limit or None, n_jobs=n_jobs, verify=False
        )
    else:
        data = sapwood.Dataset.from_files(
            folder,
            "y",
            store=folder.parent / "store",
            memory_limit=limit or None,
            n_jobs=n_jobs,
        )
    built = time.perf_counter() - start
    build_peak = peak()
    start = time.perf_counter()
    model = sapwood.train({**PARAMS, "n_jobs": n_jobs}, data)
    took = time.perf_counter() - start
    return {
        "data": built,
        "train": took,
        "data MB": build_peak,
        "peak MB": peak(),
        "model": model.fingerprint()[:12],
    }


def xgboost_external(folder: Path, n_jobs: int) -> dict[str, Any]:
    """XGBoost's external memory over the same files."""
    import xgboost
    from pyarrow import parquet

    class Files(xgboost.DataIter):
        def __init__(self) -> None:
            self.files = sorted(folder.glob("*.parquet"))
            self.at = 0
            super().__init__(cache_prefix=str(folder.parent / "cache"))

        def next(self, input_data: Any) -> bool:
            if self.at == len(self.files):
                return False
            table = parquet.read_table(self.files[self.at])
            names = [name for name in table.column_names if name != "y"]
            X = np.column_stack([table[name].to_numpy() for name in names])
            input_data(data=X, label=table["y"].to_numpy())
            self.at += 1
            return True

        def reset(self) -> None:
            self.at = 0

    start = time.perf_counter()
    data = xgboost.ExtMemQuantileDMatrix(Files(), max_bin=256, nthread=n_jobs)
    built = time.perf_counter() - start
    build_peak = peak()
    start = time.perf_counter()
    params = {
        "objective": "binary:logistic",
        "max_leaves": LEAVES,
        "max_depth": 6,
        "nthread": n_jobs,
    }
    xgboost.train(params, data, ROUNDS)
    return {
        "data": built,
        "train": time.perf_counter() - start,
        "data MB": build_peak,
        "peak MB": peak(),
    }


def run(what: str, folder: Path, limit: int, n_jobs: int) -> dict[str, Any]:
    """A measurement in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "child",
        what,
        str(folder),
        str(limit),
        str(n_jobs),
    ]
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode:
        return {"failed": (out.stderr.strip().splitlines() or ["?"])[-1]}
    found: dict[str, Any] = json.loads(out.stdout.strip().splitlines()[-1])
    return found


def show(name: str, found: dict[str, Any]) -> None:
    """A line of the table."""
    if "failed" in found:
        print(f"{name:32} {found['failed']}", flush=True)
        return
    print(
        f"{name:32} data {found['data']:7.1f} s  train {found['train']:7.1f} s  "
        f"peak {found['data MB']:6} MB, {found['peak MB']:6} MB  {found.get('model', '')}",
        flush=True,
    )


def speed(where: Path, n_rows: int, repeats: int, n_jobs: int) -> None:
    """Rows of 28 columns in memory, and from a store that is in the page cache: with
    and without a limit.
    """
    import sapwood

    def batches() -> Iterator[Any]:
        return (rows(28, part, n_rows // 4) for part in range(4))

    data = sapwood.Dataset.from_batches(batches, store=where / "store")
    print(
        f"store: {sum(one.stat().st_size for one in (where / 'store').iterdir()) / 1e6:.0f} MB"
    )
    fast = sapwood.estimate_cost({**PARAMS, "n_jobs": n_jobs}, data).fast
    kinds = {
        "memory": ("memory", n_rows // 4),
        "store": ("opened", 0),
        "store, limited": ("opened", fast),
    }
    best: dict[str, dict[str, Any]] = {}
    for _ in range(repeats):  # in turns, so that a busy moment hits all of them
        for name, (what, limit) in kinds.items():
            found = run(what, where / "store", limit, n_jobs)
            if name not in best or found.get("train", 1e9) < best[name].get(
                "train", 1e9
            ):
                best[name] = found
    for name, found in best.items():
        show(name + (f" to {fast / 1e6:.0f} MB" if "limited" in name else ""), found)
        if "train" in found:
            print(
                f"{'':32} {found['train'] / best['memory']['train']:.2f} times the time in memory"
            )


def size(where: Path, gigabytes: float, n_columns: int, n_jobs: int) -> None:
    """A folder of Parquet files, with a limit of a quarter of its numbers."""
    start = time.perf_counter()
    n_bytes = make_folder(where / "parts", gigabytes, n_columns)
    limit = n_bytes // 4
    took = time.perf_counter() - start
    print(
        f"{n_bytes / 1e9:.2f} GB of numbers, limit {limit / 1e6:.0f} MB ({took:.0f} s to write)",
        flush=True,
    )
    show("sapwood", run("files", where / "parts", limit, n_jobs))
    shutil.rmtree(where / "store", ignore_errors=True)
    show("xgboost, external memory", run("xgboost", where / "parts", 0, n_jobs))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("speed", "size", "child"))
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--where", help="the folder for the data; it is deleted again")
    given = parser.parse_args()
    if given.what == "child":
        kind, folder, limit, n_jobs = given.rest
        print(json.dumps(child(kind, Path(folder), int(limit), int(n_jobs))))
        return
    with tempfile.TemporaryDirectory(dir=given.where) as where:
        if given.what == "speed":
            speed(Path(where), given.rows, given.repeats, given.n_jobs)
        else:
            size(Path(where), given.gigabytes, given.columns, given.n_jobs)


if __name__ == "__main__":
    main()
