"""The command line: thin, one service call a command."""

from countersign.cli.root import main

__all__ = ["main"]
