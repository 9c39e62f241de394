"""An NVIDIA GPU as a device: the verbs of the native core on rows that lie in its memory.

In: arrays of this process. Out: arrays of this process. `runtime.py` has CuPy, `trainer.py` the training.
"""

from typing import Any

from sapwood import _core
from sapwood._core import Explainer, Forest, cuts
from sapwood.device.cuda import binned, trainer
from sapwood.device.cuda.runtime import Runtime, cuda

__all__ = ["Binned", "Explainer", "Forest", "Trainer", "apply", "cuts", "name"]


def make(runtime: Runtime) -> tuple[type[binned.Binned], type[trainer.Trainer]]:
    """The classes of a device whose kernels run in this runtime."""
    return type("Binned", (binned.Binned,), {"runtime": runtime}), type(
        "Trainer", (trainer.Trainer,), {"runtime": runtime}
    )


def apply(table: binned.Binned, *tree: Any) -> Any:
    """The leaf (node id) of every row of a binned table in one tree."""
    return _core.apply(table.host, *tree)


name = "cuda"


def __getattr__(verb: str) -> Any:
    if verb not in ("Binned", "Trainer"):
        raise AttributeError(verb)
    globals()["Binned"], globals()["Trainer"] = make(cuda())
    return globals()[verb]
