"""Passkeys of buyers (WebAuthn Level 3, https://www.w3.org/TR/webauthn-3/).

The person has to be verified by the device (`userVerification: required`), the passkey has to be
found without an identifier (`residentKey: required`), so that no list of them leaves the service.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import structlog
from sqlalchemy import Connection, Row

from countersign.db.rows import of_row
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.remembered import sql
from countersign.remembered.model import PASSKEY_KEPT, Kind, KnownBy, NotKnown, RelyingParty
from countersign.remembered.room import Remembered, new_row
from countersign_evidence.disclosure import b64url

T = TypeVar("T")

RESPONSE_LENGTH_MAX: Final = 16_384
"""Of what a browser sends, in characters."""
TIMEOUT_MS: Final = 300_000
_CREDENTIAL_ID_BYTES_MAX: Final = 1023
"""WebAuthn §4, Credential ID."""
_ALGORITHMS: Final = (-8, -7, -257)
"""EdDSA, ES256, RS256 (IANA COSE Algorithms), as WebAuthn §5.4 recommends."""
_log: Final = structlog.get_logger("countersign.remembered")


def registration_options(
    room: Remembered, party: RelyingParty, mode: Mode, cbid: str, *, challenge: bytes, name: str
) -> dict[str, Any]:
    """The options of `navigator.credentials.create` (§5.4), with bytes as base64url.

    `name` is what the device shows. The user handle is a keyed hash: a second passkey of one
    person on one device takes the place of the first.
    """
    return {
        "challenge": b64url(challenge),
        "rp": {"id": party.id, "name": party.id},
        "user": {"id": b64url(_handle(room, mode, cbid)), "name": name, "displayName": name},
        "pubKeyCredParams": [{"type": "public-key", "alg": alg} for alg in _ALGORITHMS],
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "attestation": "none",
        "timeout": TIMEOUT_MS,
    }


def assertion_options(party: RelyingParty, challenge: bytes) -> dict[str, Any]:
    """The options of `navigator.credentials.get` (§5.5), with bytes as base64url."""
    return {
        "challenge": b64url(challenge),
        "rpId": party.id,
        "userVerification": "required",
        "timeout": TIMEOUT_MS,
    }


async def register(
    room: Remembered, mode: Mode, cbid: str, challenge: bytes, response: str
) -> bool:
    """Keep the passkey that a browser has made for this challenge; durable when this returns.

    False: it is not what was asked for, is known already, or the buyer was erased.
    """
    party = room.party
    if party is None:
        return False
    made = await _checked(lambda: _registered(party, challenge, response))
    if made is None:
        return False
    row = new_row(room, mode, cbid, Kind.PASSKEY, _lookup(room, made.credential_id))
    row |= {"public_key": made.public_key, "sign_count": made.sign_count}
    row |= {"user_handle": _handle(room, mode, cbid)}
    return await room.buyers.access.database.write(sql.add, row)


async def assert_passkey(
    room: Remembered,
    mode: Mode | None,
    challenge: bytes,
    response: str,
    asked_at: datetime | None = None,
) -> KnownBy | NotKnown:
    """Whose passkey has signed this challenge, of this mode if one is named.

    A counter that did not grow means that there is a copy of the passkey (§6.1.1): it is removed.
    `asked_at`, where the challenge itself can be used more than once: a passkey that was used since
    is refused.
    """
    party, access = room.party, room.buyers.access
    credential_id = _credential_id(response)
    if party is None or credential_id is None:
        return NotKnown.REFUSED
    now = from_ns(access.clock.time_ns())
    row = await access.database.read(
        sql.find, mode, Kind.PASSKEY, _lookup(room, credential_id), now
    )
    if row is None:
        return NotKnown.UNKNOWN
    if asked_at is not None and asked_at <= row.last_used_at:
        return NotKnown.REFUSED
    count = await _checked(lambda: _asserted(party, row, challenge, response))
    if count is None:
        return NotKnown.REFUSED
    return await access.database.write(_use, row, count, now)


def _use(
    connection: Connection, row: Row[*tuple[Any, ...]], count: int, now: datetime
) -> KnownBy | NotKnown:
    if (count or row.sign_count) and count <= row.sign_count:
        sql.remove_by(connection, row.lookup)
        _log.warning("passkey_copied", id=row.id)
        return NotKnown.COPIED
    changed = {"sign_count": count, "last_used_at": now, "expires_at": now + PASSKEY_KEPT}
    is_first = sql.use(connection, row.id, row, **changed)
    return of_row(row, KnownBy) if is_first else NotKnown.REFUSED


class _Made(NamedTuple):
    credential_id: bytes
    public_key: bytes
    sign_count: int


def _registered(party: RelyingParty, challenge: bytes, response: str) -> _Made:
    from webauthn import verify_registration_response  # noqa: PLC0415 - see `_checked`
    from webauthn.helpers.cose import COSEAlgorithmIdentifier  # noqa: PLC0415

    _refuse_framed(response)
    made = verify_registration_response(
        credential=response,
        expected_challenge=challenge,
        expected_rp_id=party.id,
        expected_origin=party.origin,
        require_user_verification=True,
        supported_pub_key_algs=[COSEAlgorithmIdentifier(alg) for alg in _ALGORITHMS],
    )
    if len(made.credential_id) > _CREDENTIAL_ID_BYTES_MAX:
        raise ValueError("the credential id is too long")
    return _Made(made.credential_id, made.credential_public_key, made.sign_count)


def _asserted(
    party: RelyingParty, row: Row[*tuple[Any, ...]], challenge: bytes, response: str
) -> int:
    """The counter of the passkey, which its caller judges."""
    from webauthn import verify_authentication_response  # noqa: PLC0415 - see `_checked`
    from webauthn.helpers import parse_authentication_credential_json  # noqa: PLC0415

    _refuse_framed(response)
    credential = parse_authentication_credential_json(response)
    if credential.response.user_handle != row.user_handle:
        raise ValueError("the user handle is another one")
    return verify_authentication_response(
        credential=credential,
        expected_challenge=challenge,
        expected_rp_id=party.id,
        expected_origin=party.origin,
        credential_public_key=row.public_key,
        credential_current_sign_count=0,
        require_user_verification=True,
    ).new_sign_count


async def _checked(check: Callable[[], T]) -> T | None:
    """What a check of a response returns; None if it is refused.

    In a thread: the first use loads a library (80 ms, 6 MiB), which no start should wait for.
    """
    try:
        return await asyncio.to_thread(check)
    except Exception as error:  # noqa: BLE001 - a library over bytes that a stranger chose
        _log.info("passkey_refused", reason=type(error).__name__)
        return None


class _ClientData(msgspec.Struct):
    crossOrigin: bool = False  # noqa: N815 - WebAuthn §5.8.1


class _Response(msgspec.Struct):
    clientDataJSON: str = ""  # noqa: N815 - WebAuthn §5.8.1


class _Credential(msgspec.Struct):
    id: str
    response: _Response


def _refuse_framed(response: str) -> None:
    """Refuse what was made inside a page of another origin (§13.4.2); ValueError if it was."""
    from webauthn.helpers import base64url_to_bytes  # noqa: PLC0415 - see `_checked`

    sent = msgspec.json.decode(response, type=_Credential).response.clientDataJSON
    if msgspec.json.decode(base64url_to_bytes(sent), type=_ClientData).crossOrigin:
        raise ValueError("made in a frame of another origin")


def _credential_id(response: str) -> str | None:
    if len(response) > RESPONSE_LENGTH_MAX:
        return None
    try:
        return msgspec.json.decode(response, type=_Credential).id
    except (msgspec.DecodeError, UnicodeError):
        return None


def _lookup(room: Remembered, credential_id: str | bytes) -> bytes:
    text = credential_id if isinstance(credential_id, str) else b64url(credential_id)
    return room.buyers.access.secret.blind_index("remembered", "passkey", text)


def _handle(room: Remembered, mode: Mode, cbid: str) -> bytes:
    return room.buyers.access.secret.blind_index(f"remembered {mode.value}", "user_handle", cbid)
