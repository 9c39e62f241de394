"""The client's side of a training on Dask: who holds which parts, and what happens when
a worker is lost.

In: parts on a cluster. Out: a model with the bytes of a fit in memory, or an error
within bounded time.

An attempt runs on the workers that have parts. Where one of them is lost, Dask computes
its parts again elsewhere, and the next attempt goes on from the rounds that the other
workers remember (`journal.py`).
"""

import asyncio
import itertools
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future, rpc

from sapwood.dask import link, rows, worker
from sapwood.errors import DataError, HolderLostError, MessageError, SapwoodError
from sapwood.version import VERSION

# attempts in a row without a new round; then the last error is raised
MAX_IDLE_ATTEMPTS = 8
WATCH = 0.01  # seconds between two looks at the tasks
NANNY = 10.0  # seconds that a nanny has to kill its worker
IDENTITY_EVERY = 1.0  # seconds between two looks at the list of workers
GRACE = 2.0  # seconds in which other workers may still say what went wrong


@dataclass
class Plan:
    """A training on a cluster."""

    client: Client
    timeout: float
    # of the training rows, and of each validation set
    parts: list[list[Future]] = field(default_factory=list)
    # what all holders get: bins, params, callbacks, ...
    common: dict[str, Any] = field(default_factory=dict)
    name: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    lost: set[str] = field(default_factory=set)  # addresses that take no part any more
    # addresses that did not answer another worker, but the client
    doubted: set[str] = field(default_factory=set)
    reached: int = 0  # rounds that the client has heard of


async def run(plan: Plan) -> dict[str, Any]:
    """Train, and again where workers are lost; what the first holder returned."""
    sizes = [await _sizes(plan, parts) for parts in plan.parts]
    idle = 0
    n_known = 0
    for attempt in itertools.count():
        try:
            found = await _attempt(plan, sizes, attempt)
        except (HolderLostError, MessageError) as error:
            idle, n_known = (
                (0, plan.reached) if plan.reached > n_known else (idle + 1, n_known)
            )
            if idle >= MAX_IDLE_ATTEMPTS:
                raise
            await _doubt(
                plan,
                {
                    one
                    for one in plan.common.get("addresses", ())
                    if f"worker {one} does not answer" in str(error)
                },
            )
            await asyncio.sleep(min(2.0, 0.2 * 2**idle))
        else:
            if len({one["fingerprint"] for one in found}) != 1:
                raise SapwoodError(
                    "the workers ended with different models; this is an error in Sapwood."
                )
            return found[0] | {"attempts": attempt + 1}
    raise AssertionError


async def _sizes(plan: Plan, parts: Sequence[Future]) -> list[int]:
    """The rows of every part; an error in computing one is raised as it is."""
    counted = plan.client.map(
        rows.count, parts, pure=False, key=f"sapwood-rows-{uuid.uuid4().hex[:8]}"
    )
    found: list[int] = await plan.client.gather(counted)
    return found


async def _attempt(
    plan: Plan, sizes: Sequence[Sequence[int]], attempt: int
) -> list[dict[str, Any]]:
    """One attempt, on the workers that are there."""
    client = plan.client
    running = await _running(plan)
    owners = [
        await _owners(plan, parts, size, running)
        for parts, size in zip(plan.parts, sizes, strict=True)
    ]
    addresses = plan.common["addresses"] = sorted(set(owners[0]) - {""})
    await _install(plan, addresses)
    name = f"{plan.name}-{attempt}"
    rank_of = {address: rank for rank, address in enumerate(addresses)}
    # holder, set -> parts
    own: list[list[list[int]]] = [[[] for _ in plan.parts] for _ in addresses]
    for which, owner in enumerate(owners):
        for index, address in enumerate(owner):
            # a part without rows has no owner; one of a worker without training rows
            # moves
            if address:
                own[rank_of.get(address, index % len(addresses))][which].append(index)
    starts = [list(itertools.accumulate(size, initial=0)) for size in sizes]
    job = plan.common | {
        "name": name,
        "topic": f"sapwood-{plan.name}",
        "timeout": plan.timeout,
        "n_rows": [sum(size) for size in sizes],
        "positions": [
            [[starts[k][i] for i in indices] for k, indices in enumerate(mine)]
            for mine in own
        ],
    }
    tasks = []
    for rank, address in enumerate(addresses):
        mine = [
            [plan.parts[k][i] for i in indices] for k, indices in enumerate(own[rank])
        ]
        tasks.append(
            client.submit(
                worker.hold,
                job,
                mine[0],
                mine[1:],
                rank,
                key=f"sapwood-train-{name}-holder-{rank}",
                workers=[address],
                allow_other_workers=False,
                pure=False,
                retries=0,
                priority=100,
            )
        )
    try:
        await _watch(plan, tasks, addresses)
        found: list[dict[str, Any]] = await client.gather(tasks)
        if error := next((one["error"] for one in found if "error" in one), None):
            raise error
        return found
    finally:
        await client.cancel(tasks, force=True)


async def _watch(plan: Plan, tasks: Sequence[Future], addresses: Sequence[str]) -> None:
    """Return when all tasks are done; raise the most telling error of those that
    failed, or of a lost worker.
    """
    loop = asyncio.get_running_loop()
    looked = loop.time()
    failed_at = None
    # tasks that returned while others run on: one may have returned an error
    early: set[str] = set()
    while any(task.status == "pending" for task in tasks):
        for task in [
            one for one in tasks if one.status == "finished" and one.key not in early
        ]:
            early.add(task.key)
            if (returned := (await task).get("error")) is not None:
                raise returned
        failed = [
            task for task in tasks if task.status in ("error", "cancelled", "lost")
        ]
        if failed and failed_at is None:
            failed_at = loop.time()
        if failed and (loop.time() - failed_at > GRACE or await _own_error(failed)):  # type: ignore[operator]
            break
        if loop.time() - looked > IDENTITY_EVERY:
            looked = loop.time()
            gone = set(addresses) - set(await _workers(plan))
            if gone and not failed:
                raise HolderLostError(f"worker {sorted(gone)[0]} has left the cluster.")
        await asyncio.sleep(WATCH)
    failed = [task for task in tasks if task.status in ("error", "cancelled", "lost")]
    if not failed:
        return
    for task in [
        one for one in tasks if one.status == "finished" and one.key not in early
    ]:
        if (returned := (await task).get("error")) is not None:
            raise returned
    if (error := await _own_error(failed)) is not None:
        raise error
    errors = [await task._exception() for task in failed if task.status == "error"]
    telling = sorted(errors, key=lambda error: "does not answer" not in str(error))
    raise (
        telling[0]
        if telling and isinstance(telling[0], SapwoodError)
        else HolderLostError("a worker was lost.")
    )


async def _own_error(failed: Sequence[Future]) -> BaseException | None:
    """An error that is not about a lost worker, of the first task that has one."""
    for task in failed:
        if task.status == "error":
            error: BaseException | None = await task._exception()
            about_worker = (
                isinstance(error, HolderLostError | MessageError)
                or "KilledWorker" in type(error).__name__
            )
            if error is not None and not about_worker:
                return error
    return None


async def _workers(plan: Plan) -> Mapping[str, Any]:
    """The workers of the cluster by address; raises where the scheduler does not
    answer.
    """
    try:
        found = await asyncio.wait_for(plan.client.scheduler.identity(), plan.timeout)
    except (TimeoutError, OSError) as cause:
        raise SapwoodError("the scheduler of the cluster does not answer.") from cause
    workers: Mapping[str, Any] = found["workers"]
    return workers


async def _running(plan: Plan) -> set[str]:
    """Addresses of workers that take tasks; waits for one."""
    deadline = asyncio.get_running_loop().time() + plan.timeout
    while True:
        found = {
            address
            for address, one in (await _workers(plan)).items()
            if one.get("status", "running") == "running"
        }
        if found - plan.lost:
            return found - plan.lost
        if asyncio.get_running_loop().time() > deadline:
            raise SapwoodError(
                f"the cluster has no running worker for {plan.timeout:g} seconds."
            )
        await asyncio.sleep(0.2)


async def _owners(
    plan: Plan, parts: Sequence[Future], sizes: Sequence[int], running: set[str]
) -> list[str]:
    """The worker that holds each part: one where it lies; parts are spread where
    several have them.
    """
    await _computed(parts, plan.timeout)
    places: Mapping[str, Sequence[str]] = await plan.client.who_has(parts)
    load = dict.fromkeys(sorted(running), 0)
    owners = []
    for part, size in zip(parts, sizes, strict=True):
        candidates = [
            one for one in places.get(part.key, ()) if one in running
        ] or list(load)
        owner = min(candidates, key=lambda one: (load[one], one)) if size else ""
        if size:
            load[owner] += size
        owners.append(owner)
    if not any(sizes):
        raise DataError("there are no rows.")
    return owners


async def _computed(parts: Sequence[Future], timeout: float) -> None:
    """Wait for all parts; the error of one that failed is raised, and so is one that
    stays lost.
    """
    loop = asyncio.get_running_loop()
    since = loop.time()
    while True:
        lost = [part for part in parts if part.status == "lost"]
        since = since if lost else loop.time()
        if bad := [part for part in parts if part.status == "cancelled"] or (
            lost if loop.time() - since > timeout else []
        ):
            raise DataError(
                f"the part {bad[0].key} is lost, and cannot be computed again."
            )
        if failed := [part for part in parts if part.status == "error"]:
            raise await failed[0]._exception()
        if all(part.status == "finished" for part in parts):
            return
        await asyncio.sleep(WATCH)


async def _install(plan: Plan, addresses: Sequence[str]) -> None:
    """Make the workers ready, and refuse other versions than that of the client."""

    async def one(address: str) -> Any:
        try:
            ready = plan.client.run(link.install, workers=[address], on_error="return")
            return (await asyncio.wait_for(ready, plan.timeout))[address]
        except (TimeoutError, OSError, KeyError) as cause:
            raise HolderLostError(f"worker {address} does not answer.") from cause

    found = await asyncio.gather(*map(one, addresses), return_exceptions=True)
    for address, facts in zip(addresses, found, strict=True):
        if isinstance(facts, HolderLostError | OSError):
            raise HolderLostError(f"worker {address} does not answer.") from facts
        if isinstance(facts, BaseException):
            raise SapwoodError(
                f"worker {address} cannot run Sapwood: {facts!r}"
            ) from facts
        if facts != {"sapwood": VERSION}:
            raise SapwoodError(
                f"worker {address} has Sapwood {facts.get('sapwood')}, and the client {VERSION}; install one version "
                "everywhere."
            )


async def _doubt(plan: Plan, named: set[str]) -> None:
    """Decide about workers that did not answer another one.

    One that answers the client is only slow: it takes part again, unless that is the
    second time. One that does not is forgotten by the scheduler, so that its parts are
    computed elsewhere.
    """
    # the scheduler has noticed already that others are gone
    known = named & set(await _workers(plan))
    silent = {one for one in known if not await _answers(plan, one)}
    plan.lost |= (named - known) | silent | (named & plan.doubted)
    plan.doubted |= named
    for address in silent & set(await _workers(plan)):
        await plan.client.run_on_scheduler(_remove, address)


async def _answers(plan: Plan, address: str) -> bool:
    """Whether a worker answers the client in time."""
    try:
        ready = plan.client.run(link.install, workers=[address], on_error="return")
        return isinstance(
            (await asyncio.wait_for(ready, plan.timeout)).get(address), dict
        )
    except (TimeoutError, OSError, ValueError, KeyError):
        return False


async def _remove(address: str, dask_scheduler: Any) -> None:
    """Remove a worker. Its nanny, if it has one, kills the process, even a stopped one,
    and starts another.

    Left alone, a worker that wakes up may hear first that the scheduler does not know
    it; it ends its nanny then.
    """
    nanny = (
        dask_scheduler.workers[address].nanny
        if address in dask_scheduler.workers
        else None
    )
    reason = f"sapwood-lost-{uuid.uuid4().hex[:8]}"
    await dask_scheduler.remove_worker(address, stimulus_id=reason, close=nanny is None)
    if nanny:
        with suppress(OSError, TimeoutError):
            async with rpc(
                nanny, connection_args=dask_scheduler.connection_args
            ) as one:
                await asyncio.wait_for(one.kill(timeout=1, reason=reason), NANNY)
