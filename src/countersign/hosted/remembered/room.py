"""The room of remembered buyers: what its acts work with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from countersign.base.ids import timed_id
from countersign.base.passkeys import RelyingParty
from countersign.base.values import Mode, from_ns
from countersign.core.buyers.room import Buyers
from countersign.hosted.remembered.model import COOKIE_KEPT, PASSKEY_KEPT, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Passkeys and cookies of buyers, and who asked about them."""

    buyers: Buyers
    party: RelyingParty | None
    """None: there are no passkeys at the address of this deployment, only cookies."""
    passes: Counter[str] = field(default_factory=Counter)
    """How many buyers passed here, by what they were remembered by: for the metrics."""


def new_row(
    room: Remembered, mode: Mode, cbid: str, kind: Kind, lookup: bytes
) -> dict[str, object]:
    """The row of something by which a buyer is remembered from now on."""
    kept = PASSKEY_KEPT if kind is Kind.PASSKEY else COOKIE_KEPT
    time_ns = room.buyers.access.clock.time_ns()
    now = from_ns(time_ns)
    return {
        "id": timed_id("rem", time_ns, room.buyers.access.entropy(8)),
        "mode": mode,
        "cbid": cbid,
        "kind": kind,
        "lookup": lookup,
        "sign_count": 0,
        "created_at": now,
        "last_used_at": now,
        "expires_at": now + kept,
    }
