"""Parts of the data as workers have them. This file imports nothing, so that tasks that make parts start at once.

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


def empty(one: Part) -> Part:
    """No rows, of the columns that a part has."""
    return tuple(None if values is None else values[:0] for values in one)  # type: ignore[return-value]
