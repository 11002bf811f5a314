"""Idempotency: the first 2xx answer to a key is kept for a day and given again."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from countersign.mode import Mode

LIFETIME: Final = timedelta(hours=24)
KEY_LENGTH_MAX: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyEntry:
    """A kept answer.

    `slot` is the keyed hash of account, mode, method, path and key; `fingerprint` that of the
    request body; `response` the encrypted bytes of the answer's body.
    """

    slot: bytes
    account_id: str
    mode: Mode
    fingerprint: bytes
    response: bytes
    created_at: datetime
    expires_at: datetime
