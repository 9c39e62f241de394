"""What touches the operating system on behalf of a user: files that are written,
folders that are cleared, children.

No other part of the package may write, replace or delete a file, or start a process;
`tools/rooms.py` checks it.
"""
