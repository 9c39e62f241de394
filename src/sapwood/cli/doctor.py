"""``sapwood doctor``: is this installation in order, and does it keep the promise?

In: nothing. Out: versions, threads, instruction set, devices, and a check that threads
do not change a model.
"""

import platform
from importlib import metadata

from sapwood import __version__
from sapwood.boost.train import train
from sapwood.cli.show import Output
from sapwood.data.dataset import Dataset
from sapwood.device import host
from sapwood.device.threads import threads
from sapwood.errors import SapwoodError
from sapwood.interfaces.doctor import doctor as devices
from sapwood.system import child

PACKAGES = {
    "numpy": "",
    "scikit-learn": "",
    "narwhals": "",
    "pyarrow": "cli",
    "typer": "cli",
    "rich": "cli",
    "matplotlib": "plot",
    "onnx": "onnx",
    "optuna": "tune",
    "cupy-cuda12x": "cuda",
}
CHECK = "print(*fingerprints([1]))"
FAILED = "not checked:"  # begins what stands in the place of a fingerprint
MAX_SECONDS = 120
MAX_BYTES = 2**31


def doctor(output: Output) -> None:
    """Print what there is, and check the promise; raises if it is broken."""
    versions = {name: _version(name) for name in PACKAGES}
    lines = [
        f"sapwood {__version__}, Python {platform.python_version()}, {platform.platform()}"
    ]
    for name, version in versions.items():
        missing = f"not installed (pip install 'sapwood[{PACKAGES[name]}]')"
        lines.append(f"  {name:14}{version or missing}")
    found = devices().splitlines()
    lines += found
    isas = ["portable", host.isa()]
    prints = {
        f"{n} threads": one
        for n, one in zip((1, 2, 3, 7), fingerprints([1, 2, 3, 7]), strict=True)
    }
    prints |= {f"instruction set {isa}": _elsewhere(isa) for isa in dict.fromkeys(isas)}
    unchecked = {name: text for name, text in prints.items() if text.startswith(FAILED)}
    kept = len(set(prints.values()) - set(unchecked.values())) == 1
    lines.append(
        f"promise: on 1, 2, 3 and 7 threads, and with the instruction sets {', '.join(dict.fromkeys(isas))},"
    )
    same = f"the same training gave the same {len(prints)} models, byte for byte"
    lines.append(f"         {same if kept else f'DIFFERENT models: {prints}'}")
    output.result(
        "\n".join(lines),
        version=__version__,
        python=platform.python_version(),
        packages=versions,
        isa=host.isa(),
        threads=threads(None),
        devices=found,
        promise_kept=kept,
    )
    if not kept:
        raise SapwoodError(
            "the same training gave different models on this machine; please report this."
        )


def fingerprints(n_jobs: list[int]) -> list[str]:
    """The fingerprint of a small model, for each number of threads."""
    import numpy as np

    X = (
        (host.draw(1, host.HOLDOUT, 0, 0, 12_000) >> np.uint64(44))
        .astype(np.float64)
        .reshape(-1, 4)
    )
    y = (X[:, 0] * X[:, 1] > X[:, 2] * 2.0**18).astype(np.float64)
    data = Dataset(X, label=y)
    settings = {
        "objective": "logistic",
        "max_depth": 5,
        "subsample": 0.7,
        "n_estimators": 8,
    }
    return [train({**settings, "n_jobs": n}, data).fingerprint() for n in n_jobs]


def _elsewhere(isa: str) -> str:
    """The same in a process of its own, where the instruction set can be chosen."""
    try:
        printed = child.run(
            "from sapwood.cli.doctor import fingerprints",
            CHECK,
            seconds=MAX_SECONDS,
            n_bytes=MAX_BYTES,
            with_package=True,
            environment={"SAPWOOD_ISA": isa},
        )
    except child.ChildError as cause:
        return f"{FAILED} {cause}"
    return printed.strip()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
