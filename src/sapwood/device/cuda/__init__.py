"""An NVIDIA GPU as a device: the verbs of the native core on rows that lie in its
memory.

In: arrays of this process. Out: arrays of this process. `runtime.py` has CuPy,
`trainer.py` the training.
"""

from typing import Any

from sapwood import _core
from sapwood.device.cuda import binned, evaluating, explainer, forest, trainer
from sapwood.device.cuda.runtime import Runtime, cuda

__all__ = ["Binned", "Explainer", "Forest", "Trainer", "apply", "cuts", "name"]


VERBS: dict[str, type] = {
    "Binned": binned.Binned,
    "Trainer": trainer.Trainer,
    "Forest": forest.Forest,
    "Explainer": explainer.Explainer,
    "EvalScores": evaluating.EvalScores,
}


def make(runtime: Runtime) -> dict[str, Any]:
    """The classes of a device whose kernels run in this runtime."""
    return {
        verb: type(verb, (kind,), {"runtime": runtime}) for verb, kind in VERBS.items()
    }


def apply(table: binned.Binned, *tree: Any) -> Any:
    """The leaf (node id) of every row of a binned table in one tree."""
    return _core.apply(table.host, *tree)


name = "cuda"


def cuts(*arguments: Any, **named: Any) -> Any:
    """Cut points of the columns of a table, on the host or in device memory."""
    return (
        _core.cuts(*arguments, **named)
        if named
        else binned.find_cuts(cuda(), *arguments)
    )


def __getattr__(verb: str) -> Any:
    if verb not in VERBS:
        raise AttributeError(verb)
    globals().update(make(cuda()))
    return globals()[verb]
