"""`countersign doctor`, for machines and on call, and `countersign status`, for a person."""

from __future__ import annotations

import sys
from typing import Final

import click
from msgspec import to_builtins

from countersign import __version__
from countersign.operate.doctor.examine import FoundByDoctor, examine, problems, worst
from countersign.operate.doctor.sight import EXIT, SECONDS, Sight
from countersign_evidence.cli.support import command, show

_PROBLEMS_MAX: Final = 12
_SHOWN: Final = (
    *("server", "public_address", "database", "disk", "limits", "logs"),
    *("witnesses", "clock", "notices", "webhooks", "promises"),
)
_WIDTH: Final = 160
_seconds = click.option(
    "--seconds",
    type=click.FloatRange(1, 600),
    default=SECONDS,
    show_default=True,
    help="How long all checks together may take.",
)


@click.command()
@_seconds
@command
def doctor(*, seconds: float) -> None:
    """Look for problems, and say what to do. Changes nothing, whether a server runs or not.

    One line per check. The exit status is 0 if all is fine, 1 if there are warnings, and 2 if
    something is broken.
    """
    lines = examine(Sight(seconds=seconds))
    view = {"severity": worst(lines).value, "lines": to_builtins(lines)}
    show(view, "\n".join(map(_text, lines)))
    sys.exit(EXIT[worst(lines)])


@click.command()
@_seconds
@command
def status(*, seconds: float) -> None:
    """Show on one screen the state of the service and what needs attention."""
    lines = examine(Sight(seconds=seconds))
    wrong, known = problems(lines), {line.check: line for line in reversed(lines)}
    facts = {
        name: known[name].found
        for name in _SHOWN
        if name in known and not EXIT[known[name].severity]
    }
    text = [f"Countersign {__version__}", *(f"{name:<15} {facts[name]}" for name in facts), ""]
    text.append(f"{len(wrong)} need attention:" if wrong else "Nothing needs attention.")
    text += map(_text, wrong[:_PROBLEMS_MAX])
    if len(wrong) > _PROBLEMS_MAX:
        text.append(f"and {len(wrong) - _PROBLEMS_MAX} more: countersign doctor")
    view = {"version": __version__, "facts": facts, "problems": to_builtins(wrong)}
    short = (one if len(one) <= _WIDTH else f"{one[: _WIDTH - 1]}…" for one in text)
    show(view, "\n".join(short))


def _text(line: FoundByDoctor) -> str:
    said = f"{line.severity.value:<8} {line.check:<15} {line.found}"
    return f"{said} -> {line.what_to_do}" if line.what_to_do else said
