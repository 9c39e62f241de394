"""Parity of the GPU: every task of tests/device/tasks.py gives the bytes of the CPU, twice.

In: a GPU with CuPy. Out: a table; exit status 1 where a model differs. Tasks that the device refuses are listed with
its words. With --hashes only the CPU trains, and tests/device/hashes.txt is written: after a change of defaults.
"""

import argparse
import sys
import time
from pathlib import Path

HOUSE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOUSE / "tests"))
KEPT = HOUSE / "tests" / "device" / "hashes.txt"


def main() -> int:
    """Train every task on both devices and print the table."""
    from device import tasks  # type: ignore[import-not-found]
    from sapwood.errors import ParameterError

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--hashes", action="store_true", help="write the CPU's hashes; needs no GPU")
    given = parser.parse_args()
    found = {"same": 0, "differs": 0, "refused": 0, "failed": 0}
    kept = []
    for name, task in tasks.TASKS.items():
        if given.only not in name:
            continue
        start = time.perf_counter()
        wanted = tasks.train(task)
        kept.append(f"{wanted.fingerprint()} {name}")
        if given.hashes:
            continue
        middle = time.perf_counter()
        try:
            models = [tasks.train(task, "cuda") for _ in range(2)]
            verdict = "same" if all(one.to_bytes() == wanted.to_bytes() for one in models) else "differs"
        except ParameterError as refusal:
            verdict, models = "refused", []
            print(f"{name:30} {refusal}")
        except Exception as error:
            verdict, models = "failed", []
            print(f"{name:30} {type(error).__name__}: {error}"[:300])
            if found["failed"] > 2:
                raise
        found[verdict] += 1
        if verdict in ("same", "differs"):
            print(
                f"{name:30} {verdict:8} {middle - start:7.2f} {(time.perf_counter() - middle) / 2:7.2f} s", flush=True
            )
    print(found)
    if given.hashes:
        KEPT.write_text("\n".join(kept) + "\n")
    return not given.hashes and (found["differs"] + found["failed"] > 0 or found["same"] == 0)


if __name__ == "__main__":
    sys.exit(main())
