"""The flags explained: --help, and the table in the README."""

import textwrap

from mimickit.cli.options import all_flags

USAGE = """\
MimicKit trains policies that imitate motion clips, and films them.

usage: python run.py [--flag value ...]

  python run.py --mode test --video true                      the shipped walk, tested and filmed
  python run.py --mode view --env.motion_file clip.npz        films a clip on its character
  python run.py --arg_file args/humanoid_walk_train.txt       trains the walk
  python run.py --mode test --video true --model_file output/RUN/model.pt

Any key of the YAML files can be set too: --env.episode_length 5 --agent.discount 0.97 --engine.sim_freq 240.
A switch alone is true (--video). Values may follow after = (--num_envs=64).

flags:"""


def help_text(width: int = 110) -> str:
    """What --help prints."""
    lines = [USAGE]
    for flag in all_flags().values():
        default = f" [{flag.default_text()}]" if flag.default_text() else ""
        lines.append(f"  --{flag.name} {flag.values_text()}")
        lines += textwrap.wrap(flag.doc + default, width, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join(lines)


def flags_table() -> str:
    """The flags as a Markdown table."""
    rows = ["| flag | value | default | meaning |", "|---|---|---|---|"]
    for flag in all_flags().values():
        values = flag.values_text().replace("|", r"\|")
        rows.append(f"| `--{flag.name}` | {values} | {flag.default_text() or '–'} | {flag.doc} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(flags_table())
