"""How the initials of a hosted acknowledgment were made, as rows of a table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

from countersign.evidence.process import PROCESS, Surface
from countersign.paper.text import row, time_text

SENTENCES: Final = tomllib.loads(
    (resources.files(__package__) / "certificate.toml").read_text("utf-8")
)
SERVICE_CLOCK: Final = "by this service's own clock, on its operator's word"
TEST_CLOCK: Final = "by the sandbox's test clock"
_TICKED: Final = "a box that the browser sent as ticked"
_CLAIMED: Final = "claimed by the browser; not observed by this service"


def clock_of(record: Mapping[str, Any]) -> str:
    """By which clock the times of the process are."""
    return TEST_CLOCK if "test_clock" in record else SERVICE_CLOCK


def process_rows(
    process: Mapping[str, Any], ids: Sequence[str] | None, record: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What the service observed, then what the browser claims, which each row says.

    `process` was checked by a reader; `ids` are those of the notice's lines, None if
    the lines stand elsewhere. Its times are by the clock of the sandbox if the record has that
    clock's time.
    """
    page = process["surface"] == Surface.PAGE
    clock = clock_of(record)
    surface = SENTENCES["surfaces"].get(process["surface"])
    ran, viewport, claimed = process["script"], process["viewport"], process["claimed"]
    reviewed = process["reviewed_at"]
    return [
        row("Hosted session", process["checkout_session"]),
        row(
            "Shown by",
            surface.format(origin=process["origin"] or "of unknown origin")
            if surface
            else process["surface"],
        ),
        row(
            "SHA-256 of it",
            process["rendered_digest"] or "not known",
            "of the page as it was served" if page else _CLAIMED,
            mono=True,
        ),
        row("Interface", f"in the language {process['locale']}"),
        row("Notice opened", time_text(process["opened_at"]), clock),
        *(
            row(
                "Line",
                f"({id_}) initials received {time_text(line['initialed_at'])}",
                f"line served {time_text(line['shown_at'])}; {changes(line)}",
            )
            for id_, line in zip(ids or (), process["lines"] if ids else (), strict=True)
        ),
        row("Review step", f"served {time_text(reviewed)}" if reviewed else "not served"),
        row("Agreement", process["agreement"], _TICKED),
        row("Consent", process["consent"], _TICKED),
        row(
            "Tied to session by", SENTENCES["bindings"].get(process["binding"], process["binding"])
        ),
        row("Identity check", process["verification"] or "none"),
        row("JavaScript ran", "not known" if ran is None else "yes" if ran else "no", _CLAIMED),
        row(
            "Window",
            f"{viewport['width']} x {viewport['height']} CSS pixels" if viewport else "not known",
            _CLAIMED,
        ),
        row(
            "Events",
            f"{len(claimed)}, received from {time_text(claimed[0]['at'])} to "
            f"{time_text(claimed[-1]['at'])}"
            if claimed
            else "none",
            f"{_CLAIMED}; each is in the disclosure {PROCESS}",
        ),
    ]


def changes(line: Mapping[str, Any]) -> str:
    """How often the initials of a line were changed."""
    if not line["changes"]:
        return "initials never changed"
    last = f", last {time_text(line['changed_at'])}" if line["changed_at"] else ""
    return f"initials changed {line['changes']} {'time' if line['changes'] == 1 else 'times'}{last}"
