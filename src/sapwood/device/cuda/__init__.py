"""An NVIDIA GPU as a device: the verbs of the native core on rows that lie in its memory.

In: arrays of this process. Out: arrays of this process. `runtime.py` has CuPy, `trainer.py` the training.
"""

from typing import Any

from sapwood import _core
from sapwood._core import Explainer
from sapwood.device.cuda import binned, forest, trainer
from sapwood.device.cuda.runtime import Runtime, cuda

__all__ = ["Binned", "Explainer", "Forest", "Trainer", "apply", "cuts", "name"]


def make(runtime: Runtime) -> tuple[type[binned.Binned], type[trainer.Trainer], type[forest.Forest]]:
    """The classes of a device whose kernels run in this runtime."""
    own = {"runtime": runtime}
    return (
        type("Binned", (binned.Binned,), own),
        type("Trainer", (trainer.Trainer,), own),
        type("Forest", (forest.Forest,), own),
    )


def apply(table: binned.Binned, *tree: Any) -> Any:
    """The leaf (node id) of every row of a binned table in one tree."""
    return _core.apply(table.host, *tree)


name = "cuda"


def cuts(*arguments: Any, **named: Any) -> Any:
    """Cut points of the columns of a table, on the host or in device memory."""
    return _core.cuts(*arguments, **named) if named else binned.find_cuts(cuda(), *arguments)


def __getattr__(verb: str) -> Any:
    if verb not in ("Binned", "Trainer", "Forest"):
        raise AttributeError(verb)
    globals()["Binned"], globals()["Trainer"], globals()["Forest"] = make(cuda())
    return globals()[verb]
