"""Commands that run side by side, each in a process of its own that starts in no time."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import forked


@dataclass(frozen=True, kw_only=True)
class Command:
    """`countersign ARGUMENTS` in an environment."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    typed: str = ""
    directory: Path = Path()


class Warm:
    """Runs commands."""

    def run(self, *commands: Command) -> list[subprocess.CompletedProcess[str]]:
        """Run commands at the same time, each to its end."""
        running = [
            forked.Running(
                ["countersign", *command.arguments],
                command.environment,
                typed=command.typed,
                directory=command.directory,
            )
            for command in commands
        ]
        return [command.end() for command in running]
