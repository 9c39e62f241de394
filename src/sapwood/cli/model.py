"""``sapwood inspect`` and ``convert``: what a model file holds, and the same model for
other software.

In: a model file of ours or of a peer. Out: a description; another file.
"""

from pathlib import Path
from typing import Any

import numpy as np

from sapwood.cli import outputs, show, subject, tables
from sapwood.cli.show import Output
from sapwood.errors import ParameterError
from sapwood.model.convert import export
from sapwood.params import defaults
from sapwood.printable import printable
from sapwood.system import kinds

MAX_SHOWN = 200  # characters of a parameter
KINDS = {".sapwood": kinds.MODEL, **export.KINDS}
TARGETS = {".sapwood": "Sapwood", ".onnx": "ONNX", ".c": "C", ".json": "XGBoost's JSON"}


def inspect(path: Path, tree: int | None, top: int, output: Output) -> None:
    """Describe a model, or print one of its trees."""
    booster = subject.load(path)
    if tree is not None:
        if not 0 <= tree < booster.trees.n_trees:
            raise ParameterError(
                f"--tree {tree} does not exist; {path} has the trees 0..{booster.trees.n_trees - 1}."
            )
        output.result(
            booster.to_text(tree).rstrip(),
            tree=tree,
            nodes=booster.to_text(tree).split("\n"),
        )
        return
    gain = booster.importance("total_gain", normalize=True)
    order = np.argsort(-gain, kind="stable")[:top]
    usual = defaults()
    set_by_hand = {
        name: value
        for name, value in booster.params.items()
        if value != usual.get(name)
    }
    depth = booster.trees.depth()
    about: dict[str, Any] = {
        "objective": booster.objective,
        "link": booster.link,
        "classes": None if booster.classes is None else booster.classes.tolist(),
        "rounds": booster.n_rounds,
        "trees": booster.trees.n_trees,
        "leaves": int((booster.trees.left == 0).sum()),
        "max_depth": int(depth.max(initial=0)),
        "linear_leaves": booster.linear,
        "columns": booster.n_columns,
        "categories": len(booster.categories),
        "crosses": len(booster.crosses),
        "bytes": path.stat().st_size,
        "fingerprint": booster.fingerprint(),
        "data_fingerprint": booster.data_fingerprint,
    }
    lines = [
        printable(f"{name.replace('_', ' '):18}{_shown(value)}")
        for name, value in about.items()
        if value not in (None, "")
    ]
    parts = [
        f"{name}={_cut(repr(value))}" for name, value in sorted(set_by_hand.items())
    ]
    lines += [
        printable(f"{'parameters':18}{', '.join(parts) or 'all as by default'}"),
        "",
    ]
    rows = [
        [booster.feature_names[j], _kind(booster, int(j)), f"{100 * gain[j]:.1f} %"]
        for j in order
        if gain[j] > 0
    ]
    lines.append(show.table(rows, ["column", "type", "share of gain"]))
    left = booster.n_columns - len(rows)
    lines += (
        [
            f"... and {left} more columns (--top {booster.n_columns} shows all that are used)"
        ]
        if left > 0
        else []
    )
    columns = [
        {"name": name, "type": _kind(booster, j), "share_of_gain": float(gain[j])}
        for j, name in enumerate(booster.feature_names)
    ]
    output.result(
        "\n".join(lines), **about, params=dict(booster.params), column_list=columns
    )


def _cut(text: str) -> str:
    """The beginning of a long text: curves of survival have thousands of times."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        text = ", ".join(map(str, value[:12]))
        return f"{text}, ... {len(value)} in all" if len(value) > 12 else text
    return f"{value:,}" if isinstance(value, int) else str(value)


def _kind(booster: Any, column: int) -> str:
    if column in booster.categories:
        return f"{len(booster.categories[column].values):,} categories"
    return "number"


def convert(path: Path, to: Path, force: bool, output: Output) -> None:
    """Write a model in another format, which the end of the name says."""
    tables.check_paths({"the model to convert": path}, {"--output": to})
    booster = subject.load(path)
    suffix = to.suffix.lower()
    if suffix not in TARGETS:
        choices = ", ".join(f"{end} ({name})" for end, name in TARGETS.items())
        raise ParameterError(
            f"{to.name}: the name does not say the format; it must end in one of {choices}."
        )
    outputs.check(to, KINDS[suffix], force)
    if suffix == ".sapwood":
        booster.save(to, force=force)
    else:
        booster.export(to, force=force)
    size = to.stat().st_size
    output.result(
        f"{TARGETS[suffix]} model written to {printable(str(to))} ({size:,} bytes)",
        output=str(to),
        bytes=size,
    )
