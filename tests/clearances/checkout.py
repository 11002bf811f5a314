"""A vendor's checkout over HTTP, with the steps to cause every reason."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.acknowledgments import acknowledge as acknowledging
from countersign.core.acknowledgments.model import Submission
from countersign.operate import bootstrap
from tests.clearances.desk import NO_ONE, MovingClock
from tests.http.backstage import Operator, Vendor, notice_file
from tests.http.calls import SHIPPED_NOTICE, acknowledge, verify
from tests.support.service import Server

CLEARANCES = "/v1/clearances"
ZIP = "94110"
SESSION = "cs_of_this_test"
ADULT = '[[obligations]]\ntype = "adult_signature"\n'
LABEL = "Signature required."

_numbers = itertools.count(1)


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """An account, and what its checkout sends with a test key unless a test says otherwise."""

    vendor: Vendor
    operator: Operator
    server: Server

    @property
    def client(self) -> httpx2.Client:
        return self.vendor.test

    def buyer(self, part: str | None = None, zip_: str | None = ZIP) -> str:
        """Verify a buyer in the sandbox; a new one unless it plays a part."""
        session = f"test_{part}" if part else f"vs_{next(_numbers)}"
        fields = {} if zip_ is None else {"shipping_zip": zip_}
        answer = verify(self.client, provider_identity_session_id=session, **fields)
        assert answer.status_code == 200, answer.text
        cbid: str = answer.json()["cbid"]
        return cbid

    def initialed(self, notice_id: str = SHIPPED_NOTICE, **fields: object) -> str:
        """Acknowledge a notice; in the session of this test unless another is given."""
        fields.setdefault("session_id", SESSION)
        answer = acknowledge(self.client, notice_id=notice_id, headers=None, **fields)
        assert answer.status_code == 200, answer.text
        ack_id: str = answer.json()["ack_id"]
        return ack_id

    def initialed_long_ago(self, age: timedelta) -> str:
        """An acknowledgment from then: written with that clock, while the server runs."""
        clock = MovingClock(datetime.now(tz=UTC) - age)
        principal = Principal(
            key_id="key",
            account_id=self.vendor.account_id,
            mode=Mode.TEST,
            scopes=VENDOR_SCOPES,
            credential="secret_key",
        )

        async def work() -> str:
            settings = load_settings(self.server.deployment.environment)
            async with bootstrap.open_deployment(settings, clock=clock) as opened:
                notice = await opened.notices.registry.in_force(SHIPPED_NOTICE, Mode.TEST)
                submission = Submission(
                    initials_per_line=["JD"] * len(notice.content.bullets),
                    session_id=SESSION,
                    cbid=None,
                    notice_version=None,
                    origin=NO_ONE,
                )
                return (
                    await acknowledging.acknowledge(
                        opened.acknowledgments, principal, notice, submission
                    )
                ).id

        return asyncio.run(work())

    def notice(self, more: str = "") -> tuple[str, str]:
        """Publish a notice of this test alone; gives its id and version."""
        notice_id = f"of-clearances-{next(_numbers)}"
        self.operator.publish(notice_file(notice_id, "1") + more)
        return notice_id, "1"

    def ask(
        self,
        ack_id: str,
        cbid: str,
        /,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,  # noqa: ANN401 - any JSON
    ) -> httpx2.Response:
        """Ask whether the order of this test may ship."""
        body = {"ack_id": ack_id, "cbid": cbid, "shipping_zip": ZIP, "session_id": SESSION} | more
        return self.client.post(CLEARANCES, json=body, headers=dict(headers or {}))

    def decision(
        self,
        ack_id: str,
        cbid: str,
        /,
        **more: Any,  # noqa: ANN401 - any JSON
    ) -> dict[str, Any]:
        """The answer, which is 200 either way."""
        answer = self.ask(ack_id, cbid, **more)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def cleared(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        """A new order that is cleared."""
        answer = self.decision(self.initialed(), self.buyer(), **more)
        assert answer["cleared"] is True, answer
        return answer

    def back(self, clearance_id: str) -> dict[str, Any]:
        """Read a clearance back."""
        answer = self.client.get(f"{CLEARANCES}/{clearance_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def fulfil(self, clearance_id: str, **answer: object) -> httpx2.Response:
        """Report the fulfilment; a time of 2099 is confirmed, unless the report says otherwise."""
        if any(str(value).startswith("2099") for value in answer.values()):
            answer = {"confirm_order_of_events": True} | answer
        return self.client.post(f"{CLEARANCES}/{clearance_id}/fulfilment", json=answer)
