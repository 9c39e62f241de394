"""Arrays of other libraries in the memory of a GPU: what they are known by, and their
copy on the host.

In: an array of CuPy, PyTorch, JAX, cuDF or another library. Out: whether it is there;
an array of this process.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# device types of DLPack: memory of a GPU, and memory that it shares with the host
CUDA_DEVICES = (2, 13)


def is_there(values: Any) -> bool:
    """Whether an array, a column or a table is in the memory of a GPU."""
    return (
        hasattr(values, "__cuda_array_interface__")
        or hasattr(values, "to_cupy")
        or by_dlpack(values)
    )


def by_dlpack(values: Any) -> bool:
    """Whether an array says through DLPack that it is in the memory of a GPU."""
    if isinstance(values, np.ndarray) or not hasattr(type(values), "__dlpack_device__"):
        return False
    try:
        return values.__dlpack_device__()[0] in CUDA_DEVICES
    except (RuntimeError, BufferError, ValueError, TypeError):
        # an array that DLPack has no word for
        return False


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

    has_address = hasattr(values, "__cuda_array_interface__")
    found: NDArray[Any] = (
        cupy.asarray(values) if has_address else cupy.from_dlpack(values)
    ).get()
    return found
