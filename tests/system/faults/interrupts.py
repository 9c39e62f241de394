"""Run as a program: every job with a SIGINT at a random moment, again and again, then
without.

In: how many signals for each job. Out: a line for each job; an exit status other than 0
where a job did not end, or did not give the same bytes afterwards.
"""

import os
import random
import signal
import sys
import threading
import time

import numpy as np

import sapwood as sw

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 10))
y = 2 * X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X))
model = sw.train({"n_estimators": 150, "n_jobs": 2}, sw.Dataset(X, y))
raw, some = model.to_bytes(), np.broadcast_to(X[:400], (500, 400, 10)).reshape(-1, 10)
JOBS = {
    "fit": lambda: sw.train(
        {"n_estimators": 8, "n_jobs": 2}, sw.Dataset(X, y, n_jobs=2)
    ).to_bytes(),
    "automatic fit": lambda: sw.train(
        {"quality": "balanced", "learning_rate": 0.5, "n_jobs": 2},
        sw.Dataset(X[:3000], y[:3000]),
    ).to_bytes(),
    "predict": lambda: model.predict(some, n_jobs=2).tobytes(),
    "load": lambda: sw.load(raw).to_bytes(),
    "explain": lambda: sw.load(raw).explain(X[:200], n_jobs=2).values.tobytes(),
}
times = int(sys.argv[1])
draw = random.Random(0)
for name, job in JOBS.items():
    right = job()
    since = time.perf_counter()
    job()
    usual = time.perf_counter() - since
    stopped = late = lost = 0
    slowest = 0.0
    for _ in range(times):
        sent: list[float] = []

        def interrupt(sent=sent):
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(draw.uniform(0.0, usual), interrupt)
        ended = False
        try:
            timer.start()
            job()
            ended = True
            until = time.perf_counter() + 60
            while time.perf_counter() < until and not (
                sent and time.perf_counter() > sent[0] + 1
            ):
                time.sleep(0.001)
            lost += 1
        except KeyboardInterrupt:
            slowest = max(slowest, 0.0 if ended else time.perf_counter() - sent[0])
            stopped, late = stopped + (not ended), late + ended
        timer.join()
        assert job() == right, name
    print(
        f"{name}: {times} signals, {stopped} stopped it, {late} came late, {lost} lost, slowest {slowest:.2f} s",
        flush=True,
    )
