"""``python -m sapwood``: the command line.

In: arguments. Out: an exit status.
"""

from sapwood.cli import main

if __name__ == "__main__":
    main()
