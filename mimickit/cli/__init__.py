"""The command line: the only place that builds engine, environment, agent and loggers together."""

from mimickit.cli.entry import main

__all__ = ["main"]
