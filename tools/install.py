"""Install this project with pip, and show how far that is: pip is silent for the minute
in which the core compiles.

    .venv/bin/python tools/install.py '.[cli]'     the words are those of `pip install`

In: what to install. Out: in a terminal a line that is kept up to date, elsewhere a line
now and then. All that pip and the compiler say goes to install.log in the virtual
environment, and after an error its end is printed. The exit status is that of pip.
"""

import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

LOG = Path(sys.prefix) / "install.log"
PIP = [
    sys.executable,
    "-m",
    "pip",
    "--disable-pip-version-check",
    "install",
    "--verbose",
]
OPTIONS = ["--no-compile"]  # modules that are imported are compiled then
STAGES = {  # what begins with a line that has these words
    "Installing build dependencies: started": "fetching the tools to compile with",
    "Building wheel for sapwood": "compiling the C++ core",
    "Linking CXX shared module": "linking the C++ core",
    "Installing collected packages": "installing the packages",
    "Collecting ": "fetching packages",
}
COMPILED = re.compile(r"\[(\d+)/(\d+)\] Building CXX")  # as Ninja says it
ERROR = re.compile(r"\s*(FAILED: |CMake Error|ERROR: |error: )")
N_LAST_LINES = 40  # of the log, where none of its lines looks like the first error
REDRAWN_EVERY = 0.25  # seconds
INTERRUPTED = 130  # the exit status after Ctrl-C


class Progress:
    """What is going on, and since when."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._text = "starting"
        self._was_half = False
        self._in_terminal = sys.stdout.isatty()
        self._is_over = threading.Event()
        self._clock = threading.Thread(target=self._redraw, daemon=True)

    def __enter__(self) -> "Progress":
        if self._in_terminal:
            self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._in_terminal:
            self._clock.join()
            print("\r\033[K", end="", flush=True)  # clears the line

    def elapsed(self) -> str:
        """Minutes and seconds since the start."""
        minutes, seconds = divmod(round(time.monotonic() - self._start), 60)
        return f"{minutes}:{seconds:02}"

    def see(self, line: str) -> None:
        """Take in a line that pip, or the compiler, has printed."""
        for words, stage in STAGES.items():
            if words in line and not line.rstrip().endswith("'done'"):
                self._text = stage
        compiled = COMPILED.search(line)
        if compiled is None:
            return
        n_done = int(compiled[1])
        n_steps = int(compiled[2])
        self._text = f"compiling the C++ core, {n_done} of {n_steps} steps"
        is_half = 2 * n_done >= n_steps
        if is_half and not self._was_half and not self._in_terminal:
            print(f"  {self.elapsed()}  {self._text}", flush=True)
        self._was_half = is_half

    def _redraw(self) -> None:
        """Keep the line of a terminal up to date."""
        while not self._is_over.wait(REDRAWN_EVERY):
            line = f"  {self.elapsed()}  {self._text} ..."
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{line[:width]}\033[K", end="", flush=True)


def errors(log: str) -> str:
    """The part of the log that says what went wrong: all from the first error on, else
    the last lines.
    """
    lines = log.splitlines()
    first = next(
        (at for at, line in enumerate(lines) if ERROR.match(line)), -N_LAST_LINES
    )
    return "\n".join(lines[first:])


def main() -> int:
    """Run pip."""
    command = [*PIP, *OPTIONS, *sys.argv[1:]]
    print(
        "Installing. Compiling the C++ core takes about a minute on two idle cores.",
        flush=True,
    )
    with LOG.open("w") as log, Progress() as progress:
        pip = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert pip.stdout is not None
        try:
            for line in pip.stdout:
                log.write(line)
                progress.see(line)
        except KeyboardInterrupt:  # pip has got the signal too
            pip.wait()
            return INTERRUPTED
        status = pip.wait()
    if status != 0:
        print(errors(LOG.read_text()), file=sys.stderr)
        print(
            f"This was not installed; {LOG} has all that pip and the compiler said.",
            file=sys.stderr,
        )
        return status
    print(f"Installed in {progress.elapsed()} minutes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
