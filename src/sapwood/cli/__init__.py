"""The command line: ``sapwood train``, ``predict``, ``evaluate``, ``explain``,
``report`` and others.

In: arguments. Out: an exit status: 0 done, 1 an error in the data or the model, 2 wrong
usage, 130 interrupted.
"""

import signal
import sys

from sapwood.system.address_space import loading

INTERRUPTED = 130  # as shells have it: 128 and the number of the signal


def main() -> None:
    """Run the command line; needs ``pip install 'sapwood[cli]'``."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # nohup ignores one of them
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end_in_order)
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _end_in_order(number: int, _: object) -> None:
    """End so that nothing is left behind: files that are being written are removed on
    the way out.
    """
    sys.exit(128 + number)


def _run() -> int:
    try:
        with loading(estimators=True):
            import pyarrow  # noqa: F401  tables come from files through it
            import rich  # noqa: F401
            import typer  # noqa: F401

            from sapwood.cli.app import run
    except ModuleNotFoundError as missing:
        message = f"error: the command line needs {missing.name}, which is not installed: pip install 'sapwood[cli]'"
        print(message, file=sys.stderr)
        return 2
    except MemoryError as lack:
        print(f"error: {lack or 'there is not enough memory.'}", file=sys.stderr)
        return 1
    return run()
