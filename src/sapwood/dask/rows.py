"""Parts of the data as workers have them. This file imports nothing, so that tasks that
make parts start at once.

In: the blocks of a partition. Out: a part.
"""

from typing import Any

Part = tuple[Any, Any, Any]  # table, label, weight


def part(table: Any, label: Any, weight: Any) -> Part:
    """The rows of one partition."""
    return table, label, weight


def count(one: Part) -> int:
    """How many rows a part has."""
    table = one[0]
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def empty(one: Part, weighted: bool) -> Part:
    """No rows, of the columns that a part has; with weights, or without."""
    table, label, _ = one
    return table[:0], None if label is None else label[:0], [] if weighted else None
