"""Run as a program with fail_new.so loaded first: every job with one failed allocation
of the core, then without.

In: the path of fail_new.so, and how many allocations of each job fail, one a run; 0
means each of them once.
Out: a line for each job; an exit status other than 0 where a run neither raised
MemoryError nor gave the right bytes.
"""

import ctypes
import random
import sys

import numpy as np

import sapwood as sw

N_ROWS = 1_000
SMALL = {"n_estimators": 3, "max_leaves": 6, "n_jobs": 2}
shim = ctypes.CDLL(sys.argv[1])
shim.fail_new.argtypes = [ctypes.c_long]
shim.counted.restype = ctypes.c_long

rng = np.random.default_rng(0)
X = rng.normal(size=(N_ROWS, 5))
X[::7, 1] = np.nan
y = 2 * X[:, 0] + rng.normal(size=N_ROWS)


def fit(X=X, y=y, linear=False, **params):
    return sw.train(
        {**SMALL, **params}, sw.Dataset(X, y, linear_leaves=linear)
    ).to_bytes()


raw = fit()
JOBS = {
    "fit": fit,
    "fit linear leaves": lambda: fit(
        linear=True,
        grow_policy="symmetric",
        linear_leaves=True,
        linear_units="standard",
    ),
    "fit classes": lambda: fit(
        y=np.arange(N_ROWS) % 3, objective="softmax", n_classes=3, sampling="goss"
    ),
    "fit constraints": lambda: fit(
        monotone_constraints=[1, 0, 0, 0, 0],
        interaction_constraints=[[0, 1], [2, 3, 4]],
    ),
    "predict": lambda: sw.load(raw).predict(X).tobytes(),
    "load": lambda: sw.load(raw).to_bytes(),
    "explain": lambda: sw.load(raw).explain(X[:50]).values.tobytes(),
}

times = int(sys.argv[2])
for name, job in JOBS.items():
    right = job()
    shim.fail_new(0)
    assert job() == right
    n = shim.counted()
    draw = random.Random(0)
    failing = (
        range(1, n + 1)
        if not times
        else sorted({1, n, *(draw.randint(1, n) for _ in range(times))})
        if n
        else ()
    )
    raised = 0
    for k in failing:
        shim.fail_new(k)
        try:
            assert job() == right, (name, k)
        except MemoryError:
            raised += 1
        shim.fail_new(0)
        if k % 5 == 0:
            assert job() == right, (name, k, "after the failure")
    print(
        f"{name}: {n} allocations, {len(failing)} failed, MemoryError in {raised}",
        flush=True,
    )
