"""What one Dask worker does in a training: it holds the rows of its partitions.

In: the parts that lie on this worker, and what is to be trained. Out: the model, from
the first holder.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from distributed import get_worker, secede

from sapwood.boost.round.callback import Round
from sapwood.boost.train import train_with
from sapwood.dask.journal import Journal
from sapwood.dask.link import DaskLink
from sapwood.dask.rows import Part, empty
from sapwood.data.dataset import Dataset
from sapwood.errors import DataError, ParameterError, warnings_heard
from sapwood.holders import Communicator
from sapwood.reduce import Reduce

REPORT_EVERY = 0.2  # seconds between two reports to the client


def hold(
    job: Mapping[str, Any],
    parts: Sequence[Part],
    valid: Sequence[Sequence[Part]],
    rank: int,
) -> dict[str, Any]:
    """Train on the parts of one holder, together with the others.

    job: what all holders have in common; `positions` by holder, for the training rows
    and each validation set.
    Returns the model of rank 0 and what it cost; of the others its fingerprint. A wrong
    parameter or table is returned as an error, for the client to raise: Dask prints
    what a task raises, as if the worker had failed.
    """
    worker = get_worker()
    link = DaskLink(
        worker,
        worker.get_current_task(),
        job["name"],
        rank,
        job["addresses"],
        job["timeout"],
    )
    # other tasks can start while this one runs, so that two trainings never wait for
    # each other
    secede()
    try:
        with warnings_heard() as said:
            return _train(worker, link, job, parts, valid) | {"warnings": said}
    except (ParameterError, DataError) as error:
        return {"error": _of_workers(error.with_traceback(None))}
    except Exception as error:
        # Dask keeps the error, which must not keep the rows
        raise error.with_traceback(None) from None
    finally:
        link.close()


def _of_workers(error: Exception) -> Exception:
    """An error in words of Dask, without what was raised before it."""
    for holder, own in (
        ("dealt to several holders", "on several workers"),
        ("of one holder", "of one worker"),
    ):
        error.args = tuple(
            one.replace(holder, own) if isinstance(one, str) else one
            for one in error.args
        )
    error.__cause__ = error.__context__ = None
    return error


def _train(
    worker: Any,
    link: DaskLink,
    job: Mapping[str, Any],
    parts: Sequence[Part],
    valid: Sequence[Sequence[Part]],
) -> dict[str, Any]:
    """What `hold` does, over a link that is there."""
    rank = link.rank
    holder = Communicator(link)
    data = _dataset(parts, holder, job["positions"][rank][0], **job["bins"])
    sets = {
        name: _dataset(
            own or [empty(parts[0], weighted)], holder, at or [0], reference=data
        )
        for (name, weighted), own, at in zip(
            job["valid"].items(), valid, job["positions"][rank][1:], strict=True
        )
    }
    for held, n_rows in zip([data, *sets.values()], job["n_rows"], strict=True):
        if held.n_total != n_rows:
            raise DataError(
                f"the workers hold {held.n_total} rows, and there were {n_rows}; a partition that is computed again "
                "must have the same rows."
            )
    journals: list[Journal] = []

    def follow(facts: Mapping[str, Any], spec: Any) -> Journal:
        facts = {
            **facts,
            "rates": [spec.leaf_plan.rate(index) for index in spec.rounds],
        }
        journals.append(
            Journal(facts, holder, spec.n_outputs, spec.params["n_parallel_trees"])
        )
        return journals[0]

    report = _Report(worker, link, job["topic"] if rank == 0 else None)
    params = {**job["params"], "n_jobs": job["n_jobs"] or worker.state.nthreads}
    booster = train_with(
        params, data, sets, [*job["callbacks"], report], job["init_model"], follow
    )
    facts = {"fingerprint": booster.fingerprint(), "n_known": journals[0].n_known}
    if rank:
        return facts
    counts = {verb: vars(count) for verb, count in holder.counts.items()}
    history = {name: dict(lists) for name, lists in booster.history.items()}
    return facts | {"model": booster.to_bytes(), "history": history, "counts": counts}


def _dataset(
    parts: Sequence[Part], holder: Reduce, positions: Sequence[int], **arguments: Any
) -> Dataset:
    chunks = [tuple(one) for one in parts]
    return Dataset.dealt(chunks, holder, positions, **arguments)


class _Report:
    """A callback that reports to the client, and ends a training that Dask has
    cancelled.
    """

    def __init__(self, worker: Any, link: DaskLink, topic: str | None) -> None:
        self._worker = worker
        self._link = link
        self._topic = topic
        self._last = 0.0

    def __call__(self, view: Round) -> None:
        self._link.check_cancelled()
        if self._topic is not None and (
            view.last or time.monotonic() - self._last > REPORT_EVERY
        ):
            self._last = time.monotonic()
            measured = {name: dict(values) for name, values in view.measured.items()}
            self._worker.log_event(
                self._topic,
                {"round": view.index + 1, "last": view.last, "measured": measured},
            )
