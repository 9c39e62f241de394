"""The CPU as a device: the verbs of the native core.

In: arrays of this process. Out: arrays of this process.
"""

from sapwood._core import Binned, Explainer, Forest, Trainer, apply, cuts

__all__ = ["Binned", "Explainer", "Forest", "Trainer", "apply", "cuts", "name"]

name = "cpu"
