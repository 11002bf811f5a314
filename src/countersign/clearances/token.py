"""What the token of a clearance says: nothing personal, for it goes through many hands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from countersign.clearances.model import Order
from countersign.evidence.canonical import Json
from countersign.identity.postal_code import zip5
from countersign.instant import to_ms
from countersign.mode import Mode


class ClearanceToken:
    """Makes claims: the same clearance has the same ones."""

    def __init__(self, public_url: str) -> None:
        self._issuers = {Mode.LIVE: public_url, Mode.TEST: f"{public_url}/test"}

    def claims(
        self,
        *,
        account_id: str,
        mode: Mode,
        clearance_id: str,
        order: Order,
        obligations: Sequence[Mapping[str, Any]],
        at: datetime,
        judged_at: datetime,
        expires_at: datetime,
    ) -> dict[str, Json]:
        """The claims (RFC 7519 §4) of a clearance that was granted `at` this time.

        Where a test clock was ahead it expires by that clock, and says what it showed.

        They bind the token to its order, and tell a warehouse what it has to do. Who the buyer is
        and where the parcel goes are left out; whoever knows the order checks `order_sha256`.
        """
        test_clock = {} if judged_at == at else {"test_clock": to_ms(judged_at) // 1000}
        return {
            **test_clock,
            "iss": self._issuers[mode],
            "sub": clearance_id,
            "iat": to_ms(at) // 1000,
            "exp": to_ms(expires_at) // 1000,
            "livemode": mode is Mode.LIVE,
            "account": account_id,
            "ack_id": order.ack_id,
            "order_sha256": order_digest(order),
            "obligations": [dict(obligation) for obligation in obligations],
        }


def order_digest(order: Order) -> str:
    """Hex SHA-256 of five-digit ZIP code, product class and session, with line feeds between.

    Only the last of them can hold a line feed, so that no two orders have the same text. With
    sessions that cannot be guessed it tells nothing to those who do not know the order.
    """
    text = f"{zip5(order.shipping_zip)}\n{order.product_class or ''}\n{order.session_id}"
    return sha256(text.encode()).hexdigest()
