"""What a key sees of a VerificationSession: Stripe's rules of expanding.

From "Access verification results" in Stripe's documentation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

_OUTPUTS: Final = "verified_outputs"
_REPORT: Final = "last_verification_report"
_SENSITIVE_OUTPUTS: Final = ("dob", "id_number", "sex", "unparsed_place_of_birth", "unparsed_sex")
_SENSITIVE_DOCUMENT: Final = (
    "dob",
    "expiration_date",
    "number",
    "sex",
    "unparsed_place_of_birth",
    "unparsed_sex",
)
_SENSITIVE: Final = frozenset(
    (
        *(f"{_OUTPUTS}.{name}" for name in _SENSITIVE_OUTPUTS),
        *(f"{_REPORT}.document.{name}" for name in _SENSITIVE_DOCUMENT),
        f"{_REPORT}.id_number.dob",
        f"{_REPORT}.id_number.id_number",
    )
)
_EXPANDABLE: Final = _SENSITIVE | {_OUTPUTS, _REPORT, "last_error", "options", "redaction"}


class NotExpandable(Exception):
    """There is no such property to expand."""


def asks_sensitive(expand: Collection[str]) -> bool:
    """Whether one of the paths needs a key for sensitive results."""
    return not _SENSITIVE.isdisjoint(expand)


def shown(body: Mapping[str, Any], expand: Collection[str], *, sensitive: bool) -> dict[str, Any]:
    """The session as it is answered for these expansions.

    `sensitive` false leaves out sensitive members that were asked for, as for results that are
    older than the key may read.

    Raises:
        NotExpandable: Stripe knows no such expansion.
    """
    for path in expand:
        if path not in _EXPANDABLE:
            raise NotExpandable(path)
    wanted = set(expand) if sensitive else set(expand) - _SENSITIVE
    seen = dict(body)
    outputs = seen.pop(_OUTPUTS, None)
    if any(path.startswith(_OUTPUTS) for path in expand):
        seen[_OUTPUTS] = outputs and _without(outputs, _SENSITIVE_OUTPUTS, _OUTPUTS, wanted)
    report = seen.get(_REPORT)
    if isinstance(report, Mapping):
        seen[_REPORT] = _report(report, expand, wanted)
    return seen


def _report(report: Mapping[str, Any], expand: Collection[str], wanted: Collection[str]) -> object:
    if not any(path.startswith(_REPORT) for path in expand):
        return report["id"]
    document = report.get("document")
    if document is None:
        return dict(report)
    path = f"{_REPORT}.document"
    return dict(report) | {"document": _without(document, _SENSITIVE_DOCUMENT, path, wanted)}


def _without(
    members: Mapping[str, Any], names: Collection[str], path: str, wanted: Collection[str]
) -> dict[str, Any]:
    return {
        name: value
        for name, value in members.items()
        if name not in names or f"{path}.{name}" in wanted
    }
