"""Holders of rows: how their sums, maxima and lists travel between them.

In: a `Link`, which carries bytes from holder to holder. Out: a `sapwood.reduce.Reduce`
over them.

`threads.py` and `processes.py` have links inside one process and between processes of
one machine. docs/holders.md tells how to write another.
"""

from sapwood.holders.communicator import Communicator, Link

__all__ = ["Communicator", "Link"]
