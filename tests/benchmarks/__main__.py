"""python -m tests.benchmarks [PART ...]: measures, prints one table; no word means all that is installed."""

import importlib
import os
import sys

import torch

from tests.benchmarks.timing import Row, table
from tests.engines.conformance.conftest import is_installed

PARTS = ("engine", "training", "recorder", "films", "callbacks")
OPTIONAL = ("newton", "isaac_lab")  # engines with an installation of their own


def main(words: list[str]) -> int:
    """Run the named parts; 1 if a ratio is not what it should be."""
    unknown = [word for word in words if word not in (*PARTS, *OPTIONAL)]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; known: {', '.join((*PARTS, *OPTIONAL))}", file=sys.stderr)
        return 2
    os.environ.setdefault("MUJOCO_GL", "egl")  # mujoco.Renderer and Gymnasium choose their GL at import
    torch.set_num_threads(1)
    rows: list[Row] = []
    installed = [part for part in OPTIONAL if is_installed(part)]
    for part in words or (*PARTS, *installed):
        rows += importlib.import_module(f"tests.benchmarks.bench_{part}").run()
    print(table(rows))
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
