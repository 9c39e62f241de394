"""Training on a Dask cluster.

In: DataFrames or Arrays of Dask, or lists of delayed tables. Out: a `sapwood.Booster`.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distributed import Client, get_client, rejoin, secede
from distributed.worker import thread_state

from sapwood.boost.round.callback import Callback
from sapwood.boost.spec import merge_arguments, resolve_objective, resolve_params
from sapwood.dask import parts
from sapwood.dask.coordinate import Plan, run
from sapwood.data.dataset_file import BIN_PARAMS
from sapwood.errors import DataError, ParameterError, warn
from sapwood.model import io
from sapwood.model.booster import Booster
from sapwood.params import given_names, names
from sapwood.printable import printable

TIMEOUT = 60.0
# parameters that workers get in another way, or not at all
OF_CLIENT = ("n_jobs", "verbose")
# (X, y) or (X, y, weight); several in a list or by name
Valid = Sequence[Any] | Mapping[str, Sequence[Any]]


def train(
    params: Mapping[str, Any],
    X: Any,
    y: Any,
    n_estimators: int | None = None,
    *,
    weight: Any = None,
    valid: Valid | None = None,
    callbacks: Sequence[Callback] | None = None,
    init_model: Booster | None = None,
    client: Client | None = None,
    timeout: float = TIMEOUT,
    **more: Any,
) -> Booster:
    """Train a model on a Dask cluster. It has the bytes of `sapwood.train` on the same
    rows in memory.

    Parameters
    ----------
    params : mapping
        As in `sapwood.train`, with the parameters of a `Dataset` (``max_bins``,
        ``categorical_features``, ...) too. ``n_jobs`` is the number of threads of each
        worker, by default that of the Dask worker.
    X : dask DataFrame, dask Array, or list of delayed tables or futures
        The rows, in the order of partitions. Each worker trains on the partitions that
        lie on it.
    y, weight : Series or Array of Dask, or list of delayed arrays or futures
        Labels, and optionally weights, with the partitions of X.
    n_estimators : int, optional
        Rounds.
    valid : (X, y) or (X, y, weight), a list of such tuples, or a dict of them by name, optional
        Validation rows, as Dask collections too. Early stopping watches the last one.
    callbacks : sequence of callables, optional
        They run on every worker, which gets a copy of each.
    init_model : Booster, optional
        The model to continue from.
    client : distributed.Client, optional
        The cluster; the current client by default. With an asynchronous client, the
        result must be awaited.
    timeout : float
        Seconds after which a worker that does not answer counts as lost.
    **more
        Further parameters, by name.

    Returns
    -------
    Booster
        With an asynchronous client, an awaitable of one.
    """
    client = get_client() if client is None else client
    params = merge_arguments(train, params, n_estimators, more)
    said: list[str] | None = None if client.asynchronous else []
    found: Booster = _outside_the_pool(
        client,
        start_training,
        client,
        params,
        X,
        y,
        weight,
        valid,
        callbacks,
        init_model,
        timeout,
        said,
    )
    show_warnings(said)
    return found


async def start_training(
    client: Client,
    params: Mapping[str, Any],
    X: Any,
    y: Any,
    weight: Any,
    valid: Valid | None,
    callbacks: Sequence[Callback] | None,
    init_model: Booster | None,
    timeout: float,
    said: list[str] | None,
) -> Booster:
    """Train, in the event loop of the client; the arguments of `train`.

    Warnings of the workers are added to ``said``; None: they are shown.
    """
    settings = _settings(params, init_model)
    sets = _named(valid)
    plan = Plan(client, timeout)
    plan.parts = [parts.start(client, plan.name, X, y, weight)]
    plan.parts += [
        parts.start(client, f"{plan.name}-{one}", *own) for one, own in sets.items()
    ]
    plan.common = {
        "bins": {one: settings[one] for one in (*BIN_PARAMS, "categorical_features")},
        "params": {
            one: value
            for one, value in params.items()
            if names().get(one) not in OF_CLIENT
        },
        "n_jobs": settings["n_jobs"],
        "callbacks": list(callbacks or ()),
        # whether they have weights
        "valid": {name: own[2] is not None for name, own in sets.items()},
        "init_model": init_model,
    }
    return await _train(plan, _printer(settings["verbose"]), said)


def show_warnings(said: list[str] | None) -> None:
    """Show what workers warned of, at the user's line."""
    for one in said or ():
        warn(one.replace("dealt to several holders", "on several workers"))


async def _train(
    plan: Plan, show: Callable[[Mapping[str, Any]], None], said: list[str] | None
) -> Booster:
    topic = f"sapwood-{plan.name}"

    def heard(event: tuple[float, Mapping[str, Any]]) -> None:
        plan.reached = max(plan.reached, event[1]["round"])
        show(event[1])

    plan.client.subscribe_topic(topic, heard)
    try:
        found = await run(plan)
    finally:
        plan.client.unsubscribe_topic(topic)
        for part in itertools.chain.from_iterable(plan.parts):
            # now, and not when Python collects what is left of this training
            part.release()
    if said is None:
        show_warnings(found["warnings"])
    else:
        said += found["warnings"]
    return io.decode(found["model"], history=found["history"])


def _outside_the_pool(client: Client, work: Callable[..., Any], *args: Any) -> Any:
    """Run a coroutine function of the client; a task that calls this gives its place to
    other tasks meanwhile.
    """
    inside = (
        getattr(thread_state, "execution_state", None) is not None
        and not client.asynchronous
    )
    if inside:
        secede()
    try:
        return client.sync(work, *args)
    finally:
        if inside:
            rejoin()


def _settings(params: Mapping[str, Any], init_model: Booster | None) -> dict[str, Any]:
    """The parameters complete; those that are not for a cluster raise."""
    settings = resolve_params(params, init_model)
    for name in ("quality", "time_limit"):
        if settings[name] is not None:
            raise ParameterError(
                f"{name} is for an automatic fit, which needs all rows in one process; leave it out."
            )
    if settings["checkpoint"] is not None:
        raise ParameterError(
            "checkpoint is for a process that holds all rows; workers keep the rounds in memory."
        )
    if settings["device"] != "cpu" and "device" in given_names(params):
        raise ParameterError(
            f"device={settings['device']!r} is not for a cluster; leave it out."
        )
    # raises here what workers would raise
    resolve_objective(dict(settings), params, init_model)
    return settings


def _named(valid: Valid | None) -> dict[str, tuple[Any, Any, Any]]:
    """Validation sets (X, y, weight) by name, named as in `sapwood.train`."""
    if valid is None or len(valid) == 0:
        return {}
    if isinstance(valid, Mapping):
        found = {str(name): one for name, one in valid.items()}
    elif isinstance(valid, tuple):
        found = {"valid": valid}
    else:
        found = {f"valid_{index}": one for index, one in enumerate(valid)}
    for name, one in found.items():
        if not isinstance(one, tuple | list) or not 2 <= len(one) <= 3:
            raise DataError(
                f"validation set {name!r} is not a tuple (X, y) or (X, y, weight)."
            )
    return {name: (*one, None)[:3] for name, one in found.items()}


def _printer(verbose: int | bool) -> Callable[[Mapping[str, Any]], None]:
    """Prints what the cluster reports, at most every so many rounds; nothing where
    verbose is 0.
    """
    last = [0]

    def show(event: Mapping[str, Any]) -> None:
        if event["round"] - last[0] < int(verbose) and not event["last"]:
            return
        last[0] = event["round"]
        measured = [
            f"  {name} {metric} {v:.6g}"
            for name, of in event["measured"].items()
            for metric, v in of.items()
        ]
        print(f"[{event['round']}]" + printable("".join(measured)), flush=True)

    return show if verbose else lambda event: None
