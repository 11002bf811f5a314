"""The room of remembered buyers: what its acts work with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from countersign.buyers.room import Buyers
from countersign.host import ip_or_none
from countersign.ids import timed_id
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.remembered.model import COOKIE_KEPT, PASSKEY_KEPT, Kind, RelyingParty


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Passkeys and cookies of buyers, and who asked about them."""

    buyers: Buyers
    party: RelyingParty | None
    """None: there are no passkeys at the address of this deployment, only cookies."""
    passes: Counter[str] = field(default_factory=Counter)
    """How many buyers passed here, by what they were remembered by: for the metrics."""


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
