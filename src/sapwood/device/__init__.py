"""The only door to native code: a protocol of few verbs, and one module for every
device that has them.

In: the name of a device. Out: the device. It decides nothing, and none stands in for
another in silence.

A device computes on what it holds: the bins of a table, the rows of a training, the
trees of a model. `host.py` has what takes arrays of this process and returns others.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from sapwood.params import types

if TYPE_CHECKING:
    from sapwood import _core
    from sapwood._core import Binned, Explainer, Forest, Terms, Trainer, Tree
else:  # for annotations: only a device makes one
    Binned = Explainer = Forest = Trainer = object
    Tree = dict
    Terms = tuple

__all__ = ["Binned", "Device", "Explainer", "Forest", "Terms", "Trainer", "Tree", "get"]


class Device(Protocol):
    """Where rows are: what a module of this package has. `_core.pyi` says what each
    attribute takes and returns.
    """

    name: str
    # cut points of the columns of a table
    cuts: Callable[..., list[NDArray[np.float64]]]
    Binned: "type[_core.Binned]"  # a table as codes
    # gradients, sample, grow, refit, add_scores: the rows of a training
    Trainer: "type[_core.Trainer]"
    # the leaf of every row of a `Binned` in a tree
    apply: Callable[..., NDArray[np.int32]]
    Forest: "type[_core.Forest]"  # predictions of a model
    Explainer: "type[_core.Explainer]"  # its Shapley values


def get(name: str = types.DEVICES[0]) -> Device:
    """Get the device of a name in `sapwood.params.types.DEVICES`.

    Any other name raises `ParameterError`, and so does a device that this machine does
    not have.
    """
    found = cast(
        Device,
        import_module(f"{__name__}.{types.device.check(f'device={name!r}', name)}"),
    )
    assert found.Trainer  # a device that is not there raises here
    return found
