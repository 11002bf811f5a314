"""Inquiries that are created over the API of the simulated Persona.

Written from "Create an Inquiry" and "Generate a one-time link for an Inquiry" in Persona's OpenAPI
description, version 2025-12-08, and "Redirecting After Inquiry" in its documentation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from countersign_simulators.base import Request
from countersign_simulators.hosted import (
    Created,
    Hosted,
    Outcome,
    State,
    person_of,
    unguessable,
)
from countersign_simulators.people import Person
from countersign_simulators.persona_sessions import (
    PersonaSession,
    attributes_of,
    fields_of,
    government_id_of,
    relationships_of,
    time,
)

TEMPLATE_ID: Final = "itmpl_SimTemplate"
TEMPLATE_VERSION_ID: Final = "itmplv_SimTemplateVersion"
AGAIN: Final = frozenset({Outcome.CANCELLED})
"""A buyer who only leaves may come back: for Persona the inquiry is pending."""
_ENDS: Final[Mapping[Outcome | None, tuple[str, str | None]]] = {
    Outcome.PHOTO_BLURRED: ("failed", "failed"),
    Outcome.CONSENT_DECLINED: ("failed", None),
    Outcome.FAILED: ("declined", "failed"),
    Outcome.CANCELLED: ("pending", None),
    Outcome.EXPIRED: ("expired", None),
}
"""The status of the inquiry, and that of the document if one was submitted."""
_TEMPLATES: Final = ("template-id", "inquiry-template-id", "inquiry-template-version-id")
_ATTRIBUTES: Final[Mapping[str, type]] = {
    **dict.fromkeys(_TEMPLATES, str),
    **dict.fromkeys(("reference-id", "account-id", "creator-email-address", "theme-id"), str),
    **dict.fromkeys(("theme-set-id", "redirect-uri", "note", "initial-step-name"), str),
    "fields": dict,
    "tags": list,
}
"""Those of "Create an Inquiry"; each may be null."""
_META: Final[Mapping[str, type]] = {
    **dict.fromkeys(("auto-create-account", "auto-create-inquiry-session"), bool),
    "auto-create-one-time-link": bool,
    "auto-create-account-type-id": str,
    "auto-create-account-reference-id": str,
    "expiration-after-create-interval-seconds": int,
    "expiration-after-start-interval-seconds": int,
    "expiration-after-resume-interval-seconds": int,
    "one-time-link-expiration-seconds": int,
}
_NULLABLE_META: Final = "-seconds"
_TYPES: Final[Mapping[type, str]] = {
    str: "a string",
    int: "an integer",
    bool: "boolean",
    dict: "a hash",
    list: "an array",
}


class Invalid(Exception):
    """A request that does not fit the description: 400, with the reason as `details`."""


def create(hosted: Hosted, request: Request, environment: str) -> Created:
    """A new inquiry of this environment with its page.

    Raises:
        Invalid: a member is unknown, missing or of another type, or there is no such template.
    """
    body = _object(_json(request), "request body", {"data": dict, "meta": dict})
    if "data" not in body:
        raise Invalid("data is missing")
    data = _object(body["data"], "data", {"attributes": dict})
    if "attributes" not in data:
        raise Invalid("data.attributes is missing")
    attributes = _object(data["attributes"], "data.attributes", _ATTRIBUTES, nullable="")
    meta = _object(body.get("meta", {}), "meta", _META, nullable=_NULLABLE_META)
    templates = {name: found for name in _TEMPLATES if (found := attributes.get(name))}
    if len(templates) != 1:
        raise Invalid(f"Exactly one of {', '.join(_TEMPLATES)} must be given")
    if {*templates.values()}.isdisjoint({TEMPLATE_ID, TEMPLATE_VERSION_ID}):
        raise Invalid("Unable to find the inquiry template")
    account = {"auto-create-account-type-id", "auto-create-account-reference-id"}
    if meta.get("auto-create-account") is False and not account.isdisjoint(meta):
        raise Invalid("meta.auto-create-account must be true")
    session_id = f"inq_{unguessable(28)}"
    reference = attributes.get("reference-id") or meta.get("auto-create-account-reference-id")
    return hosted.create(
        session_id,
        # The identifier of a new inquiry opens its page: Persona asks for no session token yet.
        f"/verify?inquiry-id={session_id}",
        return_url=attributes.get("redirect-uri"),
        reference=reference,
        made={
            "environment": environment,
            "link": meta.get("auto-create-one-time-link", False),
            "session": meta.get("auto-create-inquiry-session", False),
            "note": attributes.get("note"),
            "tags": attributes.get("tags") or [],
            "fields": attributes.get("fields") or {},
        },
    )


def check_link(request: Request) -> None:
    """Raises Invalid if this is not a request for a one-time link."""
    body = _object(_json(request) if request.body else {}, "request body", {"meta": dict})
    meta = _object(body.get("meta", {}), "meta", {"expires-in-seconds": int})
    if meta.get("expires-in-seconds", 1) < 1:
        raise Invalid("meta.expires-in-seconds must be greater than 0")


def session_of(created: Created, now: float) -> PersonaSession:
    """The inquiry as it is at this Unix time."""
    own_id = created.session_id
    status, document = "created", None
    if created.state is State.BEGUN:
        status = "pending"
    elif created.state is State.PENDING:
        status, document = "completed", "passed"
    elif created.state is State.ENDED:
        status, document = _ENDS.get(created.outcome, ("approved", "passed"))
    person = replace(person_of(created, now), kind="dl")
    included = [] if document is None else [_document(created, person, now, document)]
    fields = _fields(created, person, typed=document is not None)
    attributes = attributes_of(status, "", fields, now) | {
        "reference-id": created.reference,
        **{name: created.made[name] for name in ("note", "tags")},
        **_times(created, status),
    }
    return PersonaSession(
        session_id=own_id,
        scenario="created",
        shipping_zip=created.zip,
        subject_reference=created.reference,
        personal=person.texts("first", "last", "street", "number", "born") if document else (),
        data={
            "type": "inquiry",
            "id": own_id,
            "attributes": attributes,
            "relationships": relationships_of(included),
        },
        included=included,
    )


def _document(created: Created, person: Person, now: float, status: str) -> dict[str, Any]:
    """The document as a resource of its own."""
    own_id = created.session_id
    return {
        "type": "verification/government-id",
        "id": f"ver_{own_id.removeprefix('inq_')}",
        "attributes": government_id_of(person, now, status, 0),
        "relationships": {"inquiry": {"data": {"type": "inquiry", "id": own_id}}},
    }


def _fields(created: Created, person: Person, *, typed: bool) -> dict[str, Any]:
    """What is in the fields: what the creation says, then what the buyer typed."""
    shown: dict[str, Any] = fields_of(replace(person, postcode=created.zip))
    if typed:
        return shown
    sent = created.made["fields"]
    return {name: one | {"value": sent.get(name)} for name, one in shown.items()}


def _times(created: Created, status: str) -> dict[str, Any]:
    """The times of the inquiry, null for what has not happened."""
    changed = time(created.changed_at)
    is_complete = status in {"completed", "approved", "declined"}
    return {
        "created-at": time(created.created_at),
        "updated-at": changed,
        "started-at": None if status == "created" else changed,
        "completed-at": changed if is_complete else None,
        "failed-at": changed if status == "failed" else None,
        "decisioned-at": changed if status in {"approved", "declined"} else None,
        "expired-at": changed if status == "expired" else None,
        "previous-step-name": None if status == "created" else "start",
        "next-step-name": "success" if is_complete else "verification_government_id",
    }


def _json(request: Request) -> object:
    try:
        value: object = json.loads(request.body)
    except (ValueError, RecursionError):
        raise Invalid("request body is not JSON") from None
    return value


def _object(
    value: object, path: str, members: Mapping[str, type], *, nullable: str | None = None
) -> dict[str, Any]:
    """The object, if it has only these members with values of these types.

    Members whose names end in `nullable` may be null.
    """
    if not isinstance(value, dict):
        raise Invalid(f"{path} must be a hash")
    for name, member in value.items():
        if name not in members:
            raise Invalid(f"{path}.{name} is not allowed")
        wanted = members[name]
        is_null = member is None and nullable is not None and name.endswith(nullable)
        if not is_null and (
            not isinstance(member, wanted) or (wanted is int and isinstance(member, bool))
        ):
            raise Invalid(f"{path}.{name} must be {_TYPES[wanted]}")
    return value
