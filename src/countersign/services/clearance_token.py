"""What the token of a clearance says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from countersign.domain.clearance import Order
from countersign.domain.instant import to_ms
from countersign.domain.mode import Mode
from countersign.domain.postal_code import zip5
from countersign.evidence.canonical import Json


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
        expires_at: datetime,
    ) -> dict[str, Json]:
        """The claims (RFC 7519 §4) of a clearance that was granted `at` this time.

        They bind the token to its order, and tell a warehouse what it has to do. The buyer is left
        out: nobody who handles the parcel needs to know who it is.
        """
        return {
            "iss": self._issuers[mode],
            "sub": clearance_id,
            "iat": to_ms(at) // 1000,
            "exp": to_ms(expires_at) // 1000,
            "livemode": mode is Mode.LIVE,
            "account": account_id,
            "ack_id": order.ack_id,
            "session_id": order.session_id,
            "shipping_zip": zip5(order.shipping_zip),
            "product_class": order.product_class,
            "obligations": [dict(obligation) for obligation in obligations],
        }
