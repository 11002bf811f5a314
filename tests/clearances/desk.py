"""A deployment in this process with a clock that the test moves."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from msgspec import convert
from sqlalchemy import Connection

from countersign.base.config import load_settings
from countersign.base.values import BUYER, Mode, base32, to_ms
from countersign.core.access.account import create_account
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.acknowledgments.acknowledge import acknowledge
from countersign.core.acknowledgments.model import Origin, Submission
from countersign.core.buyers import admin
from countersign.core.buyers import routes as verifying
from countersign.core.buyers import settings as verification_settings
from countersign.core.buyers.model import Buyer, BuyerStatus, ProvedSession
from countersign.core.buyers.rules import Facts, VerificationRules
from countersign.core.buyers.schemas import BuyerVerificationRequest
from countersign.core.buyers.sql import write_buyer
from countersign.core.buyers.zips import proved_zip_index
from countersign.core.clearances.clear import clear_order, prepare_order
from countersign.core.clearances.facts_sql import set_rules
from countersign.core.clearances.fulfil import fulfil_order
from countersign.core.clearances.model import ClearanceRules
from countersign.core.clearances.schemas import (
    ClearanceDecision,
    ClearanceRequest,
    FulfilmentReceipt,
    FulfilmentRequest,
)
from countersign.core.gate.act import Writing
from countersign.core.notices import publish as publishing
from countersign.core.notices.notice_file import parse_notice_file
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.identity.model import FactSource, Tri
from countersign.operate import bootstrap
from tests.http.backstage import another_deployment
from tests.support import postgres
from tests.support.acts import done

T = TypeVar("T")

NO_ONE = Origin(
    ip="203.0.113.7",
    ip_source=None,
    peer_ip="127.0.0.1",
    forwarded=None,
    forwarded_truncated=False,
    user_agent="Test/1.0",
    user_agent_source=None,
    user_agent_truncated=False,
)
_numbers = itertools.count(1)


@dataclass
class MovingClock:
    """A clock that stands still until it is moved. See `ports.Clock`."""

    now: datetime = field(default_factory=lambda: datetime(2035, 6, 4, 12, tzinfo=UTC))

    def time_ns(self) -> int:
        return to_ms(self.now) * 1_000_000

    def monotonic(self) -> float:
        return self.now.timestamp()

    def advance(self, step: timedelta) -> None:
        self.now += step


class Desk:
    """Acts of vendors and operators, without a server."""

    def __init__(
        self,
        runner: asyncio.Runner,
        deployment: bootstrap.Deployment,
        clock: MovingClock,
        secret: DeploymentSecret,
    ) -> None:
        self._runner = runner
        self._secret = secret
        self.deployment = deployment
        self.clock = clock

    def do(self, work: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await work

        return self._runner.run(awaited())

    def account(self, mode: Mode = Mode.TEST) -> Principal:
        made = self.do(create_account(self.deployment.access, f"vendor {next(_numbers)}"))
        return Principal(
            key_id="key",
            account_id=made.id,
            mode=mode,
            scopes=VENDOR_SCOPES,
            credential="secret_key",
        )

    def publish(self, file: str, *, reviewed: bool = True) -> None:
        notices = self.deployment.notices
        content = parse_notice_file(file.encode())
        self.do(done(publishing.publish, notices, content, ""))
        if reviewed:
            said: dict[str, Any] = {"by": "A. Reader", "against": "https://law.example/text"}
            self.do(done(publishing.review, notices, content.id, content.version, **said))
        # The command returns only when every server knows of it.
        self.do(self.deployment.notices.registry.notices(fresh=True))

    def withdraw(self, notice_id: str, version: str) -> None:
        notices = self.deployment.notices
        self.do(done(publishing.withdraw, notices, notice_id, version, reason="a test"))

    def acknowledge(
        self, who: Principal, notice_id: str, session_id: str | None, cbid: str | None = None
    ) -> str:
        notice = self.do(self.deployment.notices.registry.in_force(notice_id, who.mode))
        submission = Submission(
            initials_per_line=["JD"] * len(notice.content.bullets),
            session_id=session_id,
            cbid=cbid,
            notice_version=None,
            origin=NO_ONE,
        )
        return self.do(acknowledge(self.deployment.acknowledgments, who, notice, submission)).id

    def sandbox_buyer(self, who: Principal, session: str, zip_: str | None) -> str:
        request = BuyerVerificationRequest(
            provider_identity_session_id=session,
            shipping_zip=zip_,
            test_mode=True,
            subject_reference=None,
        )
        return self.do(verifying.verify(self.deployment.buyers, who, request)).cbid

    def live_buyer(
        self, who: Principal, *zips: str, age: int = 18, lasts: timedelta = timedelta(days=365)
    ) -> str:
        """Write a buyer that a provider has verified, as the judge of sessions would have."""
        cbid = f"{BUYER}_{base32(int.from_bytes(os.urandom(16), 'big'))}"
        now = self.clock.now
        proof = ProvedSession(
            session="00",
            verified_at=to_ms(now),
            began_at=to_ms(now),
            expires_at=to_ms(now + lasts),
            facts=Facts(
                age_over=age,
                document_checked=True,
                document_unexpired=Tri.PASS,
                zip_sources=(FactSource.DOCUMENT,),
            ),
            zips=tuple(
                proved_zip_index(self._secret, cbid, zip_, FactSource.DOCUMENT) for zip_ in zips
            ),
        )
        self.write(
            Buyer(
                cbid=cbid,
                account_id=who.account_id,
                mode=Mode.LIVE,
                status=BuyerStatus.VERIFIED,
                reasons=(),
                verified_at=now,
                expires_at=now + lasts,
                simulated=False,
                proofs=(proof,),
            )
        )
        return cbid

    def write(self, buyer: Buyer) -> None:
        self.do(self.deployment.database.write(_write, buyer))

    def clear(self, who: Principal, order: ClearanceRequest) -> ClearanceDecision:
        item = self.do(prepare_order(self.deployment.clearances, who, order))
        return self.do(clear_order(item)).decision

    def fulfil(self, who: Principal, clearance_id: str, **answer: Any) -> FulfilmentReceipt:  # noqa: ANN401 - fields of a report
        reported = FulfilmentRequest(**answer)
        room, write = self.deployment.clearances, Writing(self.deployment.access.database)
        return self.do(fulfil_order(room, who, clearance_id, reported, write))

    def rules(self, who: Principal, rules: ClearanceRules) -> None:
        self.do(set_rules(self.deployment.clearances, who.account_id, rules))

    def verification_rules(self, who: Principal, **rules: Any) -> None:  # noqa: ANN401 - fields of the rules
        """Set how an account verifies live buyers; no provider is ever asked here."""
        credentials = b'{"api_key": "rk_live_00000000000000000000"}'
        made = VerificationRules(**rules)
        room = self.deployment.buyers
        self.do(
            verification_settings.configure(
                room, who.account_id, "stripe", credentials, made, base_url=None
            )
        )

    def revoke(self, cbid: str) -> None:
        self.do(done(admin.revoke, self.deployment.buyers, cbid, "a test"))

    def reinstate(self, cbid: str) -> None:
        self.do(done(admin.reinstate, self.deployment.buyers, cbid, "a test"))

    def erase(self, subject: str, *, with_acknowledgments: bool = False) -> tuple[str, ...]:
        privacy = self.deployment.privacy
        plan = self.do(
            plan_erasure(privacy, subject, DEPLOYMENT, with_acknowledgments=with_acknowledgments)
        )
        self.do(erase_planned(privacy, plan, ErasureReason.REQUEST))
        return tuple(record.record_id for record in plan.records)


@contextmanager
def open_desk(
    data_dir: Path, clock: MovingClock, engine: postgres.PostgresServer | None
) -> Iterator[Desk]:
    """Open a new deployment, on SQLite or on this PostgreSQL; closed at the end."""
    loaded = load_settings(another_deployment(data_dir, engine).environment)
    with asyncio.Runner() as runner:
        secret = DeploymentSecret.from_text(loaded.secret_key_file.read_text(encoding="ascii"))
        opened = bootstrap.open_deployment(loaded, clock=clock)
        deployment = runner.run(opened.__aenter__())
        try:
            yield Desk(runner, deployment, clock, secret)
        finally:
            runner.run(opened.__aexit__(None, None, None))


def order(ack_id: str, cbid: str, session_id: str, zip_: str, **more: Any) -> ClearanceRequest:  # noqa: ANN401 - other members
    """Make an order of an accessory, without an address, unless the arguments say otherwise."""
    members = {"ack_id": ack_id, "cbid": cbid, "session_id": session_id, "shipping_zip": zip_}
    return convert(members | {"product_class": "accessory"} | more, ClearanceRequest)


def _write(connection: Connection, buyer: Buyer) -> None:
    write_buyer(connection, None, buyer)
