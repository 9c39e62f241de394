"""Parity of the GPU: every task of tests/device/tasks.py gives the bytes of the CPU,
twice, predicts with its bits, and explains some rows with them.

At last four tasks train in four threads at once, and the memory that CuPy's pool still
lends is printed.
In: a GPU with CuPy. Out: a table; exit status 1 where a model or a prediction differs.
Tasks that the device refuses are listed with its words. With --hashes only the CPU
trains, and tests/device/hashes.txt is written: after a change of defaults.
"""

import argparse
import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HOUSE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOUSE / "tests"))
KEPT = HOUSE / "tests" / "device" / "hashes.txt"


EXPLAINED = 500  # rows
TOGETHER = (
    "depthwise/100k rows",
    "leafwise/100k rows",
    "symmetric/100k classes",
    "depthwise/goss classes",
)


def predicts(model: Any, wanted: Any, table: Any) -> bool:
    """Whether a model of the device predicts and explains with the bits of the CPU,
    from the host and from there.
    """
    import cupy

    bits = wanted.predict(table).tobytes()
    there = cupy.asnumpy(model.predict(cupy.asarray(table)))
    same = model.predict(table).tobytes() == bits == there.copy(order="C").tobytes()
    some = table[:EXPLAINED]
    return bool(
        same
        and model.explain(some).values.tobytes()
        == wanted.explain(some).values.tobytes()
    )


def together(train: Any, known: Any) -> bool:
    """Whether tasks that train in threads at once give their bytes."""
    with ThreadPoolExecutor(len(TOGETHER)) as threads:
        found = list(
            threads.map(lambda name: train(known[name], "cuda").to_bytes(), TOGETHER)
        )
    return found == [train(known[name]).to_bytes() for name in TOGETHER]


def main() -> int:
    """Train every task on both devices and print the table."""
    from device import tasks  # type: ignore[import-not-found]
    from sapwood.errors import ParameterError

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--hashes", action="store_true", help="write the CPU's hashes; needs no GPU"
    )
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
            same = all(one.to_bytes() == wanted.to_bytes() for one in models)
            verdict = (
                "same"
                if same and predicts(models[0], wanted, tasks.rows(task)[0])
                else "differs"
            )
        except ParameterError as refusal:
            verdict = "refused"
            models = []
            print(f"{name:30} {refusal}")
        except Exception as error:
            verdict = "failed"
            models = []
            print(f"{name:30} {type(error).__name__}: {error}"[:300])
            if found["failed"] > 2:
                raise
        found[verdict] += 1
        if verdict in ("same", "differs"):
            print(
                f"{name:30} {verdict:8} {middle - start:7.2f} {(time.perf_counter() - middle) / 2:7.2f} s",
                flush=True,
            )
    if not given.hashes and not given.only:
        import cupy

        found["differs"] += not together(tasks.train, tasks.TASKS)
        gc.collect()
        print(
            f"{cupy.get_default_memory_pool().used_bytes()} bytes of the pool are in use"
        )
    print(found)
    if given.hashes:
        KEPT.write_text("\n".join(kept) + "\n")
    return not given.hashes and (
        found["differs"] + found["failed"] > 0 or found["same"] == 0
    )


if __name__ == "__main__":
    sys.exit(main())
