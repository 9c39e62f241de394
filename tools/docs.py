"""The pages that are made of the code, and what mkdocs needs to show the repository's
own pages as a site.

In: the table of parameters. Out: docs/api/parameters.md; with --check it is only
compared. As a hook of mkdocs: pages of the public functions and of the benchmarks,
formulas, and links to files outside docs/ as plain text.
"""

import argparse
import inspect
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import sapwood
from sapwood.interfaces.parameters import PARAMETERS
from sapwood.params import MANY_EVENTS, TABLE, ByEvents, defaults

HOUSE = Path(__file__).resolve().parent.parent
PAGE = HOUSE / "docs" / "api" / "parameters.md"
HEAD = """# Every parameter

Of `sapwood.train` (in its dict) and of the estimators (by name). A name of another library in the third column means
the same here. Written by `python tools/docs.py` from `src/sapwood/params/table.py` and the shelf of objectives.

"""


def parameters() -> str:
    """The page of all parameters."""
    usual = defaults()
    lines = [HEAD]
    rows = {row.name: row for row in TABLE} | {
        n: row for n, row in PARAMETERS.items() if n not in usual
    }
    for name, row in rows.items():
        own = PARAMETERS[name].default if name in PARAMETERS else None
        default = f"`{usual.get(name, row.default)!r}`"
        if name in PARAMETERS and own != usual.get(name, row.default):
            default += f" (estimators: `{own!r}`)"
        for task, estimator in (
            ("survival", "SapwoodSurvival"),
            ("distribution", "SapwoodDistribution"),
        ):
            if (other := getattr(row, task)) is not ...:
                default += f"; {estimator}: `{other.few if isinstance(other, ByEvents) else other!r}`"
                default += (
                    f", `{other.many}` from {MANY_EVENTS:,} events on"
                    if isinstance(other, ByEvents)
                    else ""
                )
        peers = ", ".join(f"`{one}`" for one in row.aliases)
        lines.append(
            f"### `{name}`\n\n{row.doc}\n\n- Type: {row.type}\n- Default: {default}\n"
        )
        lines.append(f"- Also called: {peers}\n" if peers else "")
        lines.append(
            ""
            if name in PARAMETERS
            else "- Not of the estimators, which find it in the data.\n"
        )
        lines.append("\n")
    return "".join(lines).rstrip() + "\n"


def functions() -> str:
    """The page of all public names."""
    lines = ["# Python API\n"]
    for name in sapwood.__all__:
        thing = getattr(sapwood, name)
        if not callable(thing):
            public = [
                one
                for one in getattr(thing, "__all__", dir(thing))
                if callable(getattr(thing, one, None))
            ]
            summary = (inspect.getdoc(thing) or "").partition("\n\n")[0]
            lines.append(f"\n## `sapwood.{name}`\n\n{summary}\n")
            lines += [
                _entry(f"sapwood.{name}.{one}", getattr(thing, one), 3)
                for one in public
                if one[0] != "_"
            ]
            continue
        lines.append(_entry(f"sapwood.{name}", thing, 2))
        if inspect.isclass(thing):
            members = [
                one
                for one in vars(thing)
                if one[0] != "_" and callable(getattr(thing, one))
            ]
            lines += [
                _entry(f"{name}.{one}", getattr(thing, one), 3) for one in members
            ]
    return "".join(lines)


def _entry(name: str, thing: Any, level: int) -> str:
    try:
        arguments = str(inspect.signature(thing))
    except (TypeError, ValueError):
        arguments = "(...)"
    arguments = "(...)" if len(arguments) > 400 else arguments
    doc = inspect.getdoc(thing) or ""
    return f"\n{'#' * level} `{name}`\n\n```text\n{name.rpartition('.')[2]}{arguments}\n\n{doc}\n```\n"


# ---- Hooks of mkdocs -----------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that no file holds."""
    from mkdocs.structure.files import File

    benchmarks = (
        (HOUSE / "benchmarks" / "README.md").read_text().replace("](../docs/", "](")
    )
    for path, content in {
        "api/python.md": functions(),
        "benchmarks.md": benchmarks,
    }.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Name files outside docs/ instead of linking to them, and write formulas as
    MathML.
    """
    folder = posixpath.dirname(page.file.src_uri)

    def plain(found: re.Match[str]) -> str:
        path, _, _ = found[2].partition("#")
        target = posixpath.normpath(posixpath.join(folder, path))
        return (
            found[0]
            if files.get_file_from_path(target) or not path
            else f"{found[1]} (`{path.lstrip('./')}`)"
        )

    linked = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)]+)\)", plain, markdown)
    # code stays as it is
    parts = re.split(r"(```.*?```|`[^`\n]+`)", linked, flags=re.DOTALL)
    return "".join(part if k % 2 else _formulas(part) for k, part in enumerate(parts))


def _inline(found: re.Match[str]) -> str:
    """A formula in a line of text; a span keeps Markdown from taking it for a block."""
    from latex2mathml.converter import convert

    return f"<span>{convert(' '.join(found[1].split()))}</span>"


def _formulas(text: str) -> str:
    """Formulas as MathML, which browsers draw by themselves: the site loads nothing
    from anywhere.
    """
    from latex2mathml.converter import convert

    text = re.sub(
        r"\$\$(.+?)\$\$",
        lambda m: convert(" ".join(m[1].split()), display="block"),
        text,
        flags=re.DOTALL,
    )
    return re.sub(r"(?<![\w$])\$([^$\n]+(?:\n[^$\n]+)?)\$(?![\w$])", _inline, text)


def main() -> int:
    """Write the page of parameters, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    if parser.parse_args().check:
        same = PAGE.exists() and PAGE.read_text() == parameters()
        print(
            f"docs/api/parameters.md is {'up to date' if same else 'not; run python tools/docs.py'}"
        )
        return not same
    PAGE.write_text(parameters())
    return 0


if __name__ == "__main__":
    sys.exit(main())
