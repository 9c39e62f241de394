"""Arrays of other libraries in the memory of a GPU: what they are known by, and their copy on the host.

In: an array of CuPy, PyTorch, cuDF or another library. Out: whether it is there; an array of this process.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_there(values: Any) -> bool:
    """Whether an array, a column or a table is in the memory of a GPU."""
    return hasattr(values, "__cuda_array_interface__") or hasattr(values, "to_cupy")


def to_host(values: Any) -> Any:
    """The same here; what is here already stays as it is."""
    if not is_there(values):
        return values
    if hasattr(values, "to_cupy"):  # a column or a table of cuDF
        values = values.to_cupy()
    if hasattr(values, "cpu"):  # PyTorch
        return np.asarray(values.detach().cpu().numpy())
    if hasattr(values, "get"):  # CuPy
        return np.asarray(values.get())
    import cupy

    found: NDArray[Any] = cupy.asarray(values).get()
    return found
