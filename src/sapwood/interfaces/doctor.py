"""What this machine can do: instruction set, threads, GPU; and whether the GPU trains
as the CPU does.

In: nothing. Out: lines of text.
"""

import numpy as np

from sapwood.boost.train import train
from sapwood.data.dataset import Dataset
from sapwood.device import get, host
from sapwood.device.threads import threads
from sapwood.errors import ParameterError


def doctor() -> str:
    """Describe the devices of this machine, and train a small model on each of them.

    Returns
    -------
    str
        One line for the CPU, one for the GPU or why there is none, one for the
        comparison of their models.
    """
    lines = [f"cpu: instruction set {host.isa()}, {threads(None)} threads"]
    try:
        device = get("cuda")
    except ParameterError as reason:
        return "\n".join([*lines, f"cuda: {reason}"])
    runtime = device.Trainer.runtime  # type: ignore[attr-defined]
    lines.append(f"cuda: {runtime.describe()}")
    models = [_model(name) for name in ("cpu", "cuda")]
    same = (
        "the same bytes"
        if models[0] == models[1]
        else "DIFFERENT models; please report this"
    )
    return "\n".join([*lines, f"parity: a small model on both devices has {same}"])


def _model(device: str) -> bytes:
    """A small model that was trained on a device."""
    X = (
        (host.draw(0, host.HOLDOUT, 0, 0, 3000) >> np.uint64(44))
        .astype(np.float64)
        .reshape(-1, 3)
    )
    y = (X[:, 0] * X[:, 1] > X[:, 2] * 2.0**18).astype(np.float64)
    return train(
        {"objective": "logistic", "max_depth": 4}, Dataset(X, label=y, device=device), 5
    ).to_bytes()
