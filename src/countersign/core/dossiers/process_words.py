"""How the initials of a hosted acknowledgment were made, as rows of a table."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

from countersign.core.paper.typeset import row, time_text
from countersign_evidence.offline.verify import seconds_of
from countersign_evidence.process import PROCESS, Method, Surface

SENTENCES: Final = tomllib.loads(
    (resources.files(__package__) / "acknowledged.toml").read_text("utf-8")
)
SERVICE_CLOCK: Final = "by this service's own clock, on its operator's word"
TEST_CLOCK: Final = "by the sandbox's test clock"
_TICKED: Final = "a box that the client sent as ticked"
_CLAIMED: Final = "claimed by the client; not observed by this service"


def clock_of(record: Mapping[str, Any]) -> str:
    """The clock of the process's times."""
    return TEST_CLOCK if "test_clock" in record else SERVICE_CLOCK


def process_rows(
    process: Mapping[str, Any], ids: Sequence[str] | None, record: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The service's observations, then the client's claims; each row says which.

    `process` was checked by a reader; `ids` are those of the notice's lines, None if
    the lines stand elsewhere. Its times are by the clock of the sandbox if the record has that
    clock's time.
    """
    page, reviewed = process["surface"] == Surface.PAGE, process["reviewed_at"]
    clock, words = clock_of(record), SENTENCES["surfaces"]
    digest = process["rendered_digest"] or "not known"
    served = [row("Served", words["page" if page else "other"])]
    if page:
        served.append(row("SHA-256 of it", digest, "of the page as it was served", mono=True))
    return [
        row("Hosted session", process["checkout_session"]),
        *served,
        row("Interface", f"in the language {process['locale']}"),
        row("Notice opened", time_text(process["opened_at"]), clock),
        *_line_rows(process, ids, clock),
        row("Review step", f"served {time_text(reviewed)}" if reviewed else "not served"),
        row("Agreement", process["agreement"], _TICKED),
        row("Consent", process["consent"], _TICKED),
        row(
            "Tied to session by", SENTENCES["bindings"].get(process["binding"], process["binding"])
        ),
        row("Identity check", process["verification"] or "none"),
        *([] if page else _surface_rows(process, digest)),
        *_claimed_rows(process),
    ]


def in_one_request(process: Mapping[str, Any]) -> bool:
    """Whether all lines were served together, and their first initials came together."""
    return len({(line["shown_at"], line["initialed_at"]) for line in process["lines"]}) == 1


def _line_rows(
    process: Mapping[str, Any], ids: Sequence[str] | None, clock: str
) -> list[dict[str, Any]]:
    """When the lines were served, and initials received: once if it was one request."""
    lines = process["lines"]
    if not in_one_request(process):
        return [
            row(
                "Line",
                f"({id_}) initials received {time_text(line['initialed_at'])}",
                f"line served {time_text(line['shown_at'])}; {span(line)} before; {changes(line)}",
            )
            for id_, line in zip(ids or (), lines if ids else (), strict=True)
        ]
    numbered = ids or [str(number) for number in range(1, len(lines) + 1)]
    changed = [
        f"line {id_}: {changes(line)}"
        for id_, line in zip(numbered, lines, strict=True)
        if line["changes"] or line.get("method") == Method.ADOPTED
    ]
    first = lines[0]
    return [
        row(
            "Initials",
            f"all lines were received in one request, {time_text(first['initialed_at'])}",
            f"{span(first)} after this service had served them, "
            f"{time_text(first['shown_at'])}; {'; '.join(changed) or changes(first)}; {clock}",
        )
    ]


def span(line: Mapping[str, Any]) -> str:
    """From serving a line to receiving initials for it, in seconds."""
    return f"{seconds_of(line)} s"


def _surface_rows(process: Mapping[str, Any], digest: str) -> list[dict[str, Any]]:
    """The place of the notice as claimed by the client, if this service served no page."""
    surface, origin = process["surface"], process["origin"] or "of unknown origin"
    shown = SENTENCES["surfaces"]["component"].format(origin=origin)
    if surface != Surface.COMPONENT:
        shown = f"{surface}, {origin}"
    return [row("Shown by", shown, _CLAIMED), row("SHA-256 of it", digest, _CLAIMED, mono=True)]


def _claimed_rows(process: Mapping[str, Any]) -> list[dict[str, Any]]:
    ran, viewport, claimed = process["script"], process["viewport"], process["claimed"]
    changed = Counter(claim["line"] for claim in claimed if claim["event"] == "changed")
    typed = [
        f"line {line or 'of no number'}: {many} {'time' if many == 1 else 'times'}"
        for line, many in changed.items()
    ]
    return [
        row("JavaScript ran", "not known" if ran is None else "yes" if ran else "no", _CLAIMED),
        row(
            "Window",
            f"{viewport['width']} x {viewport['height']} CSS pixels" if viewport else "not known",
            _CLAIMED,
        ),
        *([row("Changed while typing", "; ".join(typed), _CLAIMED)] if typed else []),
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
    """How often other initials were received for a line, and how the last ones came.

    Typing before sending is not observed.
    """
    method = line.get("method", "")
    how = f"; {SENTENCES['methods'].get(method, method)}" if method else ""
    if not line["changes"]:
        return f"the same in every submission{how}"
    last, count = (
        f", last {time_text(line['changed_at'])}" if line["changed_at"] else "",
        line["changes"],
    )
    return f"other initials {count} {'time' if count == 1 else 'times'}{last}{how}"
