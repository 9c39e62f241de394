"""What kind of file an output is, so that a file of a user is never replaced by
something else.

In: a path, and the kind of file that will be written there. Out: nothing, or an error
before anything is lost.

An existing file is replaced only if it is empty or of the same kind: a model replaces a
model, and never a table. Every kind has a mark by which its files are known; a kind
that holds rows is known by its columns.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from sapwood.errors import ParameterError
from sapwood.system.writing import NO_WAIT, is_written_into

HEAD_BYTES = 512  # of a file, in which its mark stands
CONTAINER_START = b'{"__metadata__":{"sapwood":"'
HTML_MARK = '<meta name="generator" content="sapwood">'
C_MARK = "/* Written by sapwood"
JSON_MARK = '"attributes": {"sapwood": "'
ONNX_MARK = b"\x12\x07sapwood"  # the field that says who has made the file
TOML_MARK = "# Written by sapwood tune"


@dataclass(frozen=True)
class Kind:
    """A kind of file that this package writes.

    name : what a message calls it.
    endings : what the name of such a file ends in, the usual ending first.
    is_same : whether an existing file is of this kind, from its path.
    is_named : whether its ending says what is written, so that no other ending will do.
    """

    name: str
    endings: tuple[str, ...]
    is_same: Callable[[Path], bool]
    is_named: bool = False


class Endings(Enum):
    """Which endings of names are good for a kind of file."""

    OF_KIND = auto()  # those of the kind: on the command line
    NOT_OF_ANOTHER = auto()  # all but those of other kinds: in Python
    # for functions with the names of other libraries, whose users have other endings
    ANY = auto()


def check(
    path: str | os.PathLike[str],
    kind: Kind,
    *,
    force: bool,
    endings: Endings = Endings.NOT_OF_ANOTHER,
) -> None:
    """Raise if a file of this kind may not be written to a path.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    kind : Kind
        What will be written.
    force : bool
        Whether the user has asked to write it in any case.
    endings : Endings
        Which endings of the name are good.
    """
    if type(force) is not bool:
        raise ParameterError(f"force={force!r} is neither True nor False.")
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        raise ParameterError(
            f"path={path!r} is not the path of a file; give a text or a pathlib.Path."
        )
    if is_written_into(path):
        return
    target = Path(path)
    if kind.is_named and target.suffix.lower() not in kind.endings:
        raise ParameterError(
            f"{target}: the name of {kind.name} ends in {' or '.join(kind.endings)}."
        )
    if force:
        return
    how_to_force = "say --force" if endings is Endings.OF_KIND else "give force=True"
    if not _is_good_ending(target.suffix.lower(), kind, endings):
        owner = OWNERS.get(target.suffix.lower())
        meaning = (
            "" if owner is None else f" ({target.suffix} is the ending of {owner})"
        )
        raise ParameterError(
            f"{target}: the name of {kind.name} ends in {' or '.join(kind.endings)}{meaning}. Choose such a name, or "
            f"{how_to_force}."
        )
    if not _may_be_replaced(target, kind):
        raise ParameterError(
            f"{target} exists and is not {kind.name}, so it is not replaced. Choose another name, or {how_to_force}."
        )


def _is_good_ending(ending: str, kind: Kind, endings: Endings) -> bool:
    if endings is Endings.ANY or ending in kind.endings:
        return True
    return endings is Endings.NOT_OF_ANOTHER and ending not in OWNERS


def _may_be_replaced(path: Path, kind: Kind) -> bool:
    """Whether there is nothing at a path, or an empty file, or one of the same kind."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return True
    if stat.S_ISDIR(status.st_mode):
        return True  # the writer refuses a folder
    return status.st_size == 0 or kind.is_same(path)


def head(path: Path) -> bytes:
    """The beginning of a regular file; empty where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | NO_WAIT)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _container(name: str) -> Callable[[Path], bool]:
    """Whether a file is a container of a kind; its kind stands at the end of a header
    of any length.
    """
    mark = f'\\"kind\\":\\"{name}\\"'.encode()

    def is_same(path: Path) -> bool:
        try:
            with open(path, "rb") as file:
                length = int.from_bytes(file.read(8), "little")
                header = file.read(min(length, os.path.getsize(path)))
        except OSError:
            return False
        return header.startswith(CONTAINER_START) and mark in header

    return is_same


def _marked(mark: str | bytes) -> Callable[[Path], bool]:
    """Whether the beginning of a file has a mark."""
    raw = mark if isinstance(mark, bytes) else mark.encode()
    return lambda path: raw in head(path)


MODEL = Kind("a model of Sapwood", (".sapwood",), _container("model"))
DATASET = Kind("a dataset of Sapwood", (".sapwood",), _container("dataset"))
REPORT = Kind("a report", (".html", ".htm"), _marked(HTML_MARK))
C_SOURCE = Kind("a model as C", (".c",), _marked(C_MARK))
XGBOOST_JSON = Kind("a model as XGBoost's JSON", (".json",), _marked(JSON_MARK))
ONNX = Kind("a model as ONNX", (".onnx",), _marked(ONNX_MARK))
SETTINGS = Kind("settings of sapwood tune", (".toml",), _marked(TOML_MARK))
TABLE_ENDINGS = (
    ".csv",
    ".tsv",
    ".tab",
    ".txt",
    ".parquet",
    ".pq",
    ".feather",
    ".arrow",
    ".ipc",
    ".jsonl",
    ".ndjson",
    ".xlsx",
    ".xls",
    ".db",
    ".sqlite",
    ".duckdb",
)
PROGRAM_ENDINGS = (
    ".py",
    ".ipynb",
    ".sh",
    ".md",
    ".rst",
    ".cpp",
    ".h",
    ".yaml",
    ".yml",
    ".pdf",
    ".docx",
    ".zip",
)

# The endings that say what a file is, and what it is then.
OWNERS: dict[str, str] = {
    **dict.fromkeys(TABLE_ENDINGS, "a table"),
    **dict.fromkeys(PROGRAM_ENDINGS, "another kind of file"),
    **{
        ending: kind.name
        for kind in (MODEL, REPORT, C_SOURCE, XGBOOST_JSON, ONNX, SETTINGS)
        for ending in kind.endings
    },
}
