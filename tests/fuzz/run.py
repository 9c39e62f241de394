"""Fuzzing: mutants of every format, in workers that a watchdog looks after.

In: how many mutants, of which formats. Out: a line for each format, and every find: a
crash, an error that is not ours, a mutant that took over 10 s of CPU time or 1 GB of
memory. Exit status 1 where there is one. A find is made again by

    python tests/fuzz/run.py --one FORMAT NUMBER

Mutants are numbered: the same number is the same mutant, so a later run goes on with
--first.
"""

import argparse
import multiprocessing
import os
import resource
import sys
import time
import warnings
from collections import Counter
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

# others reserve more address space than the limit leaves
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
sys.path.insert(0, str(Path(__file__).resolve().parent))
from formats import FORMATS

from sapwood.errors import SapwoodError

# of one mutant: CPU, clock (of a busy machine), bytes
MAX_SECONDS = 10.0
MAX_WALL = 600.0
MAX_MEMORY = 2**30
# a worker starts with everything imported
PROCESSES = multiprocessing.get_context("fork")
# How many of each 1,000 mutants are of a format; what is quick to read gets more.
SHARES = {
    "sapwood": 200,
    "whole": 50,
    "dataset": 60,
    "store": 40,
    "checkpoint": 15,
    "xgboost-json": 100,
    "xgboost-ubjson": 100,
    "lightgbm": 100,
    "catboost": 60,
    "messages": 200,
    "arrow": 25,
    "parquet": 50,
    "store-files": 60,
    "communicator": 150,
    "inlet": 60,
    "estimators": 60,
    "csv": 40,
    "json-lines": 60,
    "feather": 40,
    "report": 4,
}


def pages() -> int:
    """Bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def tried(name: str, index: int) -> str:
    """What became of a mutant: taken, refused, or the words of a find."""
    data = FORMATS[name].mutant(name, index)
    since = time.process_time()
    try:
        FORMATS[name].use(data)
        found = "taken"
    except SapwoodError as error:
        found = (
            "refused"
            if not isinstance(error.__cause__, MemoryError)
            else "MemoryError, then refused"
        )
    except Exception as error:
        found = f"{type(error).__name__}: {str(error)[:200]}"
    spent = time.process_time() - since
    return f"{found} after {spent:.1f} s" if spent > MAX_SECONDS else found


def work(
    name: str,
    first: int,
    last: int,
    at: "Synchronized[int]",
    results: Any,
    limited: bool,
) -> None:
    """Try mutants one after the other; `at` says which."""
    warnings.simplefilter("ignore")
    os.nice(5)
    tried(name, 0)  # imports what it needs
    results.put((name, None, {}))  # starts the thread of the queue
    if limited:
        resource.setrlimit(resource.RLIMIT_AS, (pages() + MAX_MEMORY,) * 2)
    counts: Counter[str] = Counter()
    for index in range(first, last):
        at.value = index
        found = tried(name, index)
        if found in ("taken", "refused"):
            counts[found] += 1
        else:
            results.put((name, index, found))
        if index % 500 == 499 or index == last - 1:
            results.put((name, None, dict(counts)))
            counts.clear()


def seconds(pid: int) -> float:
    """CPU time of a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Job:
    """A worker, and where it stands."""

    def __init__(
        self, name: str, first: int, last: int, results: Any, limited: bool
    ) -> None:
        self.name = name
        self.last = last
        self.limited = limited
        self.at = PROCESSES.Value("q", first)
        self.process = PROCESSES.Process(
            target=work, args=(name, first, last, self.at, results, limited)
        )
        self.process.start()
        self.seen, self.cpu, self.since = -1, 0.0, time.monotonic()

    def hangs(self) -> bool:
        """Whether it has been with one mutant for too long."""
        if self.at.value != self.seen:
            self.seen, self.cpu, self.since = (
                self.at.value,
                seconds(self.process.pid or 0),
                time.monotonic(),
            )
        spent = seconds(self.process.pid or 0) - self.cpu
        return spent > 2 * MAX_SECONDS or time.monotonic() - self.since > MAX_WALL


def run(
    n: int, names: list[str], first: int, n_workers: int, until: float, limited: bool
) -> int:
    """Try n mutants of the formats; the number of finds."""
    results: Any = PROCESSES.Queue()
    total = sum(SHARES[name] for name in names)
    todo = [(name, first, first + max(1, n * SHARES[name] // total)) for name in names]
    # Small jobs in turn, so that a run that ends early has seen every format.
    step = max(500, n // 200)
    parts = [
        (name, at, min(at + step, last))
        for name, start, last in todo
        for at in range(start, last, step)
    ]
    parts.sort(key=lambda part: (part[1] - first) / SHARES[part[0]], reverse=True)
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    finds: list[str] = []

    def drain() -> None:
        while not results.empty():
            name, index, found = results.get()
            if index is None:
                counts[name].update(found)
            else:
                finds.append(f"{name} {index}: {found}")
                print("FIND", finds[-1], flush=True)

    jobs: list[Job] = []
    told = time.monotonic()
    while parts or jobs:
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(
                f"{sum(sum(of.values()) for of in counts.values()):,} so far, {len(finds)} finds",
                flush=True,
            )
        while parts and len(jobs) < n_workers and time.time() < until:
            jobs.append(Job(*parts.pop(), results, limited))
        if not jobs:
            break
        time.sleep(0.05)
        drain()
        for job in list(jobs):
            hung = job.hangs()
            if hung:
                job.process.kill()
            if job.process.is_alive():
                continue
            job.process.join()
            jobs.remove(job)
            if job.process.exitcode or hung:
                what = (
                    "took too long"
                    if hung
                    else f"ended the process with status {job.process.exitcode}"
                )
                results.put((job.name, job.at.value, what))
                if job.at.value + 1 < job.last:
                    parts.append((job.name, job.at.value + 1, job.last))
    time.sleep(0.2)
    drain()
    for name, of in counts.items():
        print(
            f"{name:16} {sum(of.values()):9,} mutants: {of['taken']:9,} taken, {of['refused']:9,} refused"
        )
    print(
        f"{sum(sum(of.values()) for of in counts.values()):,} mutants, {len(finds)} finds",
        flush=True,
    )
    return len(finds)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=20_000)
    parser.add_argument(
        "--first",
        type=int,
        default=0,
        help="the number of the first mutant of each format",
    )
    parser.add_argument(
        "--formats", nargs="*", default=list(SHARES), choices=list(SHARES)
    )
    parser.add_argument("--workers", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="start no more work after so many"
    )
    parser.add_argument(
        "--no-limit",
        action="store_true",
        help="without a limit of memory, as sanitizers need",
    )
    parser.add_argument("--one", nargs=2, metavar=("FORMAT", "NUMBER"))
    given = parser.parse_args()
    if given.one:
        name = given.one[0]
        index = int(given.one[1])
        FORMATS[name].use(FORMATS[name].mutant(name, index))
        return
    until = time.time() + given.seconds
    sys.exit(
        run(
            given.mutants,
            given.formats,
            given.first,
            given.workers,
            until,
            not given.no_limit,
        )
        > 0
    )


if __name__ == "__main__":
    main()
