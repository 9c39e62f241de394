"""The public name of the core's elementary functions: `sapwood.math`.

In: arrays. Out: arrays, the same bits on every machine.
"""

from sapwood.device.elementary import exp, expm1, log, log1p, sigmoid, softplus, tanh

__all__ = ["exp", "expm1", "log", "log1p", "sigmoid", "softplus", "tanh"]
