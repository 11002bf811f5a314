"""Passkeys (WebAuthn Level 3, https://www.w3.org/TR/webauthn-3/), of buyers and of people.

The device must verify the person (`userVerification: required`), and the passkey must be found
without an identifier (`residentKey: required`), so that the service never sends a list of passkeys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import structlog

from countersign.base.generics import T
from countersign.base.host import ip_or_none
from countersign_evidence.disclosure import b64url

RESPONSE_LENGTH_MAX: Final = 16_384
"""Limit of a browser's input, in characters."""
TIMEOUT_MS: Final = 300_000
_CREDENTIAL_ID_BYTES_MAX: Final = 1023
"""WebAuthn §4, Credential ID."""
_ALGORITHMS: Final = (-8, -7, -257)
"""EdDSA, ES256, RS256 (IANA COSE Algorithms), as WebAuthn §5.4 recommends."""
_log: Final = structlog.get_logger("countersign.passkeys")


class RelyingParty(NamedTuple):
    """The relying party of passkeys: the deployment (WebAuthn Level 3 §4, RP ID)."""

    id: str
    origin: str


def relying_party(public_url: str) -> RelyingParty | None:
    """The relying party at this address; None where browsers allow no passkeys.

    They need a host that is a name, and HTTPS unless that is `localhost`.
    """
    parts = urlsplit(public_url)
    host = (parts.hostname or "").lower()
    is_local = host == "localhost" or host.endswith(".localhost")
    if not host or ip_or_none(host) or not (parts.scheme == "https" or is_local):
        return None
    default = {"https": 443, "http": 80}[parts.scheme]
    port = "" if parts.port in {None, default} else f":{parts.port}"
    return RelyingParty(host, f"{parts.scheme}://{host}{port}")


def creation_options(
    party: RelyingParty, *, user_handle: bytes, challenge: bytes, name: str
) -> dict[str, Any]:
    """The options of `navigator.credentials.create` (§5.4), with bytes as base64url.

    The device shows `name`. A second passkey with one user handle on one device takes the
    place of the first.
    """
    return {
        "challenge": b64url(challenge),
        "rp": {"id": party.id, "name": party.id},
        "user": {"id": b64url(user_handle), "name": name, "displayName": name},
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


class NewPasskey(NamedTuple):
    """A passkey that a browser has made."""

    credential_id: bytes
    public_key: bytes
    sign_count: int


def registered(party: RelyingParty, challenge: bytes, response: str) -> NewPasskey:
    """The passkey created for this challenge; raises ValueError if the response is not valid."""
    from webauthn import verify_registration_response  # noqa: PLC0415 - see `checked`
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
    return NewPasskey(made.credential_id, made.credential_public_key, made.sign_count)


def asserted(
    party: RelyingParty, public_key: bytes, user_handle: bytes, challenge: bytes, response: str
) -> int:
    """The passkey's new counter, for the caller to check; raises if the signature is invalid."""
    from webauthn import verify_authentication_response  # noqa: PLC0415 - see `checked`
    from webauthn.helpers import parse_authentication_credential_json  # noqa: PLC0415

    _refuse_framed(response)
    credential = parse_authentication_credential_json(response)
    if credential.response.user_handle != user_handle:
        raise ValueError("the user handle is another one")
    return verify_authentication_response(
        credential=credential,
        expected_challenge=challenge,
        expected_rp_id=party.id,
        expected_origin=party.origin,
        credential_public_key=public_key,
        credential_current_sign_count=0,
        require_user_verification=True,
    ).new_sign_count


async def checked(check: Callable[[], T]) -> T | None:
    """The result of checking a response; None if it is refused.

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


_read_credential: Final = msgspec.json.Decoder(_Credential).decode
_read_client_data: Final = msgspec.json.Decoder(_ClientData).decode


def _refuse_framed(response: str) -> None:
    """Refuse a response from a frame of another origin (§13.4.2); ValueError if it was."""
    from webauthn.helpers import base64url_to_bytes  # noqa: PLC0415 - see `checked`

    sent = _read_credential(response).response.clientDataJSON
    if _read_client_data(base64url_to_bytes(sent)).crossOrigin:
        raise ValueError("made in a frame of another origin")


def credential_id(response: str) -> str | None:
    """The identifier that a response names; None if it names none."""
    if len(response) > RESPONSE_LENGTH_MAX:
        return None
    try:
        return _read_credential(response).id
    except (msgspec.DecodeError, UnicodeError):
        return None
