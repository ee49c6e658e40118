"""Train and test policies, film them: python run.py --help."""

import sys

from mimickit.cli import main

if __name__ == "__main__":
    sys.exit(main())
