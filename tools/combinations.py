"""What goes with what, in docs/mix.md: the tables there are made of the rows of
boost/compatibility.py.

In: nothing. Out: docs/mix.md, its tables rewritten; with --check they are only
compared, exit status 1 if they differ.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sapwood.boost.compatibility import TABLE
from sapwood.params import defaults

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mix.md"
BEGIN = "<!-- combinations: begin -->\n"
END = "<!-- combinations: end -->\n"


def code(label: str) -> str:
    """A label of a condition; parameters and their values as code."""
    one = (
        label
        if label in defaults()
        else r"[a-z]+(_[a-z]+)+(=('\w+'|\w+))?|[a-z]+=('\w+'|\w+)|'\w+'"
    )
    return re.sub(rf"\b({one})|'\w+'", r"`\g<0>`", label)


def lines() -> Iterator[str]:
    """The two tables, one line for each condition and all that it excludes, or
    needs.
    """
    for needs, title in ((False, "does not go with"), (True, "need")):
        found: dict[str, dict[str, None]] = {}
        for row in TABLE:
            if row.needs == needs:
                one, other = (row.that, row.this) if needs else (row.this, row.that)
                found.setdefault(code(one.label), {})[code(other.label)] = None
        yield from ("", f"| {'these' if needs else 'this'} | {title} |", "|---|---|")
        pairs = [
            ("; ".join(others), one) if needs else (one, "; ".join(others))
            for one, others in found.items()
        ]
        yield from (f"| {one} | {other} |" for one, other in pairs)


def main() -> int:
    """Rewrite the tables, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    page = (
        before
        + BEGIN
        + "\n".join([*lines(), "", END]).removeprefix("\n")
        + rest.split(END)[1]
    )
    if parser.parse_args().check:
        print(
            "docs/mix.md is up to date"
            if page == text
            else "docs/mix.md is not; run python tools/combinations.py"
        )
        return page != text
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
