"""Holders as processes joined by pipes: the bytes of one process, and an end in bounded
time where one is lost.
"""

import os
import signal

import numpy as np
import pytest

import sapwood
from sapwood import Dataset
from sapwood.errors import SapwoodError
from sapwood.holders import processes

PARAMS = {
    "n_estimators": 5,
    "objective": "logistic",
    "subsample": 0.7,
    "max_leaves": 8,
    "n_jobs": 1,
}


def table():
    X = np.random.default_rng(0).normal(size=(900, 60))
    return X, (X[:, 0] > X[:, 1]).astype(float)


def kill(view):
    """End this process in the third round."""
    if view.index == 2:
        os.kill(os.getpid(), signal.SIGKILL)


def train(holder, what):
    """A model's bytes; or the second holder fails in some way."""
    if holder.rank == 1 and what == "raise":
        raise ValueError("mine")
    X, y = table()
    own = slice(300 * holder.rank, 300 * holder.rank + 300)
    data = Dataset.dealt([(X[own], y[own])], holder, [own.start])
    dies = holder.rank == 1 and what == "kill"
    return sapwood.train(
        PARAMS, data, callbacks=[kill if dies else lambda view: None]
    ).to_bytes()


def test_same_bytes():
    X, y = table()
    assert set(processes.run(3, train, "")) == {
        sapwood.train(PARAMS, Dataset(X, label=y)).to_bytes()
    }


@pytest.mark.parametrize(
    ("what", "message"),
    [("raise", "holder 1 failed: ValueError: mine"), ("kill", "was killed")],
)
def test_failures(what, message):
    with pytest.raises(SapwoodError, match=message):
        processes.run(3, train, what, method="fork")
