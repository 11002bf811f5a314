"""What identifies a provider's session here, and what is kept to ask about it again."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from countersign.base.values import from_ns, timed_id
from countersign.core.buyers.providers import Integration
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import zip5
from countersign.core.buyers.session_evidence import SessionRequest, encode, pending_place
from countersign.core.buyers.sessions_sql import PendingSession
from countersign.core.vault.vault import NONCE_BYTES, SHRED_KEY_BYTES, DataKey

FIRST_POLL: Final = timedelta(seconds=15)
_PENDING_ID: Final = "ses"


def session_index(room: Buyers, integration: Integration, session_id: str) -> bytes:
    """The keyed hash by which a provider's session is known."""
    return room.access.secret.blind_index(integration.namespace, "provider_session", session_id)


def asked_index(room: Buyers, integration: Integration, session_id: str, reference: str) -> bytes:
    """The keyed hash of a session and the reference that it is asked with."""
    index, both = room.access.secret.blind_index, f"{session_id}\x00{reference}"
    return index(integration.namespace, "provider_session_and_reference", both)


def zip_index(room: Buyers, account_id: str, zip_: str) -> bytes:
    """The keyed hash of a ZIP code in the questions of an account."""
    return room.access.secret.blind_index(account_id, "zip", zip5(zip_))


def to_follow(  # noqa: PLR0917 - all that is kept
    room: Buyers,
    data_key: DataKey,
    integration: Integration,
    request: SessionRequest,
    asked_index: bytes,
    cbid: str | None,
    time_ns: int,
) -> PendingSession:
    """An undecided session, with its request sealed under the account's key of this time."""
    entropy, account_id = room.access.entropy, integration.settings.account_id
    id_ = timed_id(_PENDING_ID, time_ns, entropy(8))
    drawn = entropy(SHRED_KEY_BYTES + NONCE_BYTES)
    shred_key, nonce = drawn[:SHRED_KEY_BYTES], drawn[SHRED_KEY_BYTES:]
    place = pending_place(account_id, id_)
    sealed = data_key.seal(shred_key=shred_key, nonce=nonce, plaintext=encode(request), **place)
    at = from_ns(time_ns)
    return PendingSession(
        id=id_,
        account_id=account_id,
        mode=integration.mode,
        session_index=session_index(room, integration, request.session_id),
        asked_index=asked_index,
        cbid=cbid,
        request=sealed,
        shred_key=shred_key,
        created_at=at,
        next_poll_at=at + FIRST_POLL,
    )
