"""python -m mimickit.cli: the same as run.py."""

import sys

from mimickit.cli import main

if __name__ == "__main__":
    sys.exit(main())
