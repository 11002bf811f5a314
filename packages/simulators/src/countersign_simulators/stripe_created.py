"""Creations of VerificationSessions over the API of the simulated Stripe Identity.

Written from the parameters of "Create a VerificationSession" in Stripe's API reference, version
2026-10-28.endive, "Idempotent requests", and "How sessions work".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from countersign_simulators.base import Reply, Request, with_headers
from countersign_simulators.hosted import Created, Hosted, unguessable

VERIFICATION_FLOW: Final = "vf_1SimulatedFlow0000000000"
"""The one flow that the Dashboard of this account has."""
_TYPES: Final = ("document", "id_number")
_DOCUMENT_OPTION: Final = re.compile(
    r"options\[document\]\[(allowed_types\]\[\d*|require_(?:id_number|live_capture|matching_selfie))\]"
)
_METADATA: Final = re.compile(r"metadata\[([^\[\]]{1,40})\]")
_EXPAND: Final = re.compile(r"expand\[\d*\]")
_PLAIN: Final = frozenset(
    {
        *("client_reference_id", "related_customer", "related_customer_account", "return_url"),
        *("type", "verification_flow", "provided_details[email]", "provided_details[phone]"),
        *("related_person[account]", "related_person[person]", "options[document]"),
    }
)
_METADATA_MAX: Final = 50
_VALUE_MAX: Final = 500
_KEY_MAX: Final = 255
_Form: TypeAlias = Sequence[tuple[str, str]]
_Scoped: TypeAlias = tuple[str, str | None]


class Refused(Exception):
    """A request that Stripe does not accept: 400 with these members of its error object."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.code, self.param, self.kind = code, param, kind


class Idempotency:
    """The responses to creations that came with an `Idempotency-Key`, by mode and key."""

    def __init__(self) -> None:
        self._kept: dict[_Scoped, tuple[bytes, Reply]] = {}

    def find(self, key: _Scoped, body: bytes) -> Reply | None:
        """The first response to this key.

        Raises:
            Refused: the key came with other parameters, or is too long.
        """
        if key[1] is not None and len(key[1]) > _KEY_MAX:
            message = f"Idempotency keys can be at most {_KEY_MAX} characters long."
            raise Refused(message, kind="idempotency_error")
        known = self._kept.get(key)
        if known is None:
            return None
        if known[0] != body:
            message = (
                "Keys for idempotent requests can only be used with the same parameters they were "
                f"first used with. Try using a key other than '{key[1]}' if you meant to execute a "
                "different request."
            )
            raise Refused(message, kind="idempotency_error")
        return with_headers(known[1], ("Idempotent-Replayed", "true"))

    def keep(self, key: _Scoped, body: bytes, reply: Reply) -> None:
        """Store a first response; no-op without a key."""
        if key[1] is not None:
            self._kept[key] = (body, reply)


def create(hosted: Hosted, request: Request, *, live: bool) -> Created:
    """A new session with its page.

    Raises:
        Refused: a parameter is unknown, missing or invalid.
    """
    form = _form(request)
    values = dict(form)
    kind, flow = values.get("type"), values.get("verification_flow")
    if kind is None and flow is None:
        raise Refused("Missing required param: type.", code="parameter_missing", param="type")
    if kind is not None and kind not in _TYPES:
        raise Refused(f"Invalid type: must be one of {' or '.join(_TYPES)}", param="type")
    if flow is not None and flow != VERIFICATION_FLOW:
        message = f"No such verification flow: '{flow}'"
        raise Refused(message, code="resource_missing", param="verification_flow")
    address = values.get("return_url")
    if address is not None and not _is_url(address):
        raise Refused("Not a valid URL", code="url_invalid", param="return_url")
    metadata = {found[1]: value for name, value in form if (found := _METADATA.fullmatch(name))}
    if len(metadata) > _METADATA_MAX:
        message = f"Metadata can have at most {_METADATA_MAX} keys."
        raise Refused(message, param="metadata")
    return hosted.create(
        f"vs_1Sim{unguessable(20)}",
        f"/start/{'live' if live else 'test'}_{unguessable(48)}",
        return_url=address,
        reference=values.get("client_reference_id"),
        made={
            "live": live,
            "form": form,
            "origin": request.origin,
            "secret": unguessable(24),
            "type": kind or "document",
            "verification_flow": flow,
            "metadata": metadata,
            "options": {"document": _options(form)},
            "provided_details": {
                name: values.get(f"provided_details[{name}]") for name in ("email", "phone")
            },
            "related_customer": values.get("related_customer"),
        },
    )


def _form(request: Request) -> _Form:
    """The parameters; raises Refused for one that Stripe does not describe."""
    kind = request.headers.get("content-type", "application/x-www-form-urlencoded")
    if kind.partition(";")[0].strip() != "application/x-www-form-urlencoded":
        message = (
            "Invalid request (check that your POST content type is "
            "application/x-www-form-urlencoded)."
        )
        raise Refused(message)
    form = parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True)
    for name, value in form:
        known = name in _PLAIN or any(
            pattern.fullmatch(name) for pattern in (_DOCUMENT_OPTION, _METADATA, _EXPAND)
        )
        if not known:
            message = f"Received unknown parameter: {name}"
            raise Refused(message, code="parameter_unknown", param=name)
        if not value and name != "options[document]":
            message = f"You passed an empty string for '{name}'."
            raise Refused(message, code="parameter_invalid_empty", param=name)
        if name.startswith("metadata[") and len(value) > _VALUE_MAX:
            raise Refused(f"Metadata values can have up to {_VALUE_MAX} characters.", param=name)
        if name.startswith("options[document][require_") and value not in {"true", "false"}:
            raise Refused(f"Invalid boolean: {value}", param=name)
    return form


def _options(form: _Form) -> dict[str, Any]:
    """`options.document` as requested."""
    found: dict[str, Any] = {}
    for name, value in form:
        option = _DOCUMENT_OPTION.fullmatch(name)
        if option is not None and option[1].startswith("allowed_types"):
            found.setdefault("allowed_types", []).append(value)
        elif option is not None:
            found[option[1]] = value == "true"
    return found


def _is_url(written: str) -> bool:
    try:
        parts = urlsplit(written)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
