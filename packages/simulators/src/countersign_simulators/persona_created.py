"""Creations of inquiries and their links over the API of the simulated Persona.

Written from "Create an Inquiry" and "Generate a one-time link for an Inquiry" in Persona's OpenAPI
description, version 2025-12-08.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from countersign_simulators.base import Request
from countersign_simulators.hosted import Created, Hosted, unguessable

TEMPLATE_ID: Final = "itmpl_SimTemplate"
TEMPLATE_VERSION_ID: Final = "itmplv_SimTemplateVersion"
_TEMPLATES: Final = ("template-id", "inquiry-template-id", "inquiry-template-version-id")
_ATTRIBUTES: Final[Mapping[str, type]] = {
    **dict.fromkeys(_TEMPLATES, str),
    **dict.fromkeys(("reference-id", "account-id", "creator-email-address", "theme-id"), str),
    **dict.fromkeys(("theme-set-id", "redirect-uri", "note", "initial-step-name"), str),
    "fields": dict,
    "tags": list,
}
"""The attributes of "Create an Inquiry"; each may be null."""
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
