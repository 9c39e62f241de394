"""Child processes: isolated interpreters with limits.

In: a program and its arguments. Out: what it printed, or an error; nothing of the
caller's folder is imported.

A child does not see PYTHONPATH, nor the folder that the parent works in (`-E`, `-P`): a
`catboost.py` beside a model that somebody has downloaded is never executed. It works in
a folder of its own, which vanishes with it.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sapwood.system.folders import own_folder

# the folder that holds the package
PACKAGE_FOLDER = Path(__file__).resolve().parents[2]
START = """\
import sys
n_bytes = int(sys.argv.pop(1))
package_folder = sys.argv.pop(1)
if package_folder and package_folder not in sys.path:
    sys.path.insert(0, package_folder)
"""
# Runs after the imports of a program, which take address space of their own.
LIMIT = """\
try:
    import resource
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + n_bytes, used + n_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, OSError, ValueError):
    pass
"""


class ChildError(Exception):
    """A child ended with an error, or not in time; the text says how."""


def run(
    imports: str,
    program: str,
    arguments: Sequence[str] = (),
    *,
    seconds: float,
    n_bytes: int,
    folder: Path | None = None,
    with_package: bool = False,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a program of Python in a process of its own, and return what it printed.

    Parameters
    ----------
    imports, program : str
        Source code; the memory is limited between the two.
    arguments : sequence of str
        ``sys.argv[1:]`` of the program.
    seconds, n_bytes : number
        Limits: of the clock, and of memory beyond what the imports take.
    folder : path, optional
        The folder that the child works in; by default a new one.
    with_package : bool
        Whether the program imports this package, wherever it lies.
    environment : mapping, optional
        Variables beside those of this process.
    """
    if not sys.executable:
        raise ChildError(
            "this Python does not know its own program (sys.executable is empty)"
        )
    source = START + imports + "\n" + LIMIT + program
    package_folder = os.fspath(PACKAGE_FOLDER) if with_package else ""
    command = [
        sys.executable,
        "-E",
        "-P",
        "-c",
        source,
        str(n_bytes),
        package_folder,
        *arguments,
    ]
    with own_folder() as new:
        try:
            ended = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
                cwd=folder or new,
                env={**os.environ, **(environment or {})},
            )
        except subprocess.TimeoutExpired as cause:
            raise ChildError(f"it did not end within {seconds:.0f} s") from cause
        except OSError as cause:
            raise ChildError(f"no process could be started: {cause}") from cause
    if ended.returncode:
        lines = ended.stderr.strip().splitlines() or [
            f"it ended with status {ended.returncode}"
        ]
        raise ChildError(lines[-1][:200])
    return ended.stdout
