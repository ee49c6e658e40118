"""python -m tests.benchmarks [engine] [training] [recorder] [films]: measures, prints one table; no word means all."""

import importlib
import os
import sys

import torch

from tests.benchmarks.timing import Row, table

PARTS = ("engine", "training", "recorder", "films")


def main(words: list[str]) -> int:
    """Run the named parts; 1 if a ratio is not what it should be."""
    unknown = [word for word in words if word not in PARTS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; known: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    os.environ.setdefault("MUJOCO_GL", "egl")  # mujoco.Renderer and Gymnasium choose their GL at import
    torch.set_num_threads(1)
    rows: list[Row] = []
    for part in words or PARTS:
        rows += importlib.import_module(f"tests.benchmarks.bench_{part}").run()
    print(table(rows))
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
