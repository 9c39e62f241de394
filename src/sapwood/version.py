"""The version of the package, which files and messages between processes carry.

In: nothing. Out: `VERSION`.
"""

VERSION = "0.1.0"
