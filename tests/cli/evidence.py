"""An acknowledgment with its evidence, made without starting a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.acknowledgments.acknowledge import acknowledge
from countersign.core.acknowledgments.evidence_routes import proof
from countersign.core.acknowledgments.model import Origin, Submission
from countersign.core.buyers import routes as verifying
from countersign.core.buyers.schemas import BuyerVerificationRequest
from countersign.operate.bootstrap import open_deployment
from tests.cli.conftest import Bench

NO_ONE = Origin(
    ip=None,
    ip_source=None,
    peer_ip=None,
    forwarded=None,
    forwarded_truncated=False,
    user_agent=None,
    user_agent_source=None,
    user_agent_truncated=False,
)


def make_evidence(bench: Bench, account_id: str, folder: Path) -> tuple[str, Path, Path]:
    """Acknowledge the shipped notice; gives the ack_id, and files with its proof and the policy."""
    ack_id, proof, policy = asyncio.run(_make(bench, account_id))
    files = folder / "evidence.tlog-proof", folder / "evidence.policy"
    for file, data in zip(files, (proof, policy), strict=True):
        file.write_bytes(data)
    return ack_id, *files


def make_sandbox_buyer(bench: Bench, account_id: str) -> str:
    """Verify somebody in the sandbox; gives the cbid."""

    async def make() -> str:
        request = BuyerVerificationRequest(
            provider_identity_session_id=None,
            shipping_zip=None,
            test_mode=True,
            subject_reference=None,
        )
        async with open_deployment(load_settings(bench.environment)) as deployment:
            return (await verifying.verify(deployment.buyers, _principal(account_id), request)).cbid

    return asyncio.run(make())


def make_many(bench: Bench, account_id: str, number: int) -> None:
    """Acknowledge the shipped notice many times."""
    asyncio.run(_make_many(bench, account_id, number))


async def _make_many(bench: Bench, account_id: str, number: int) -> None:
    async with open_deployment(load_settings(bench.environment)) as deployment:
        notice = await deployment.notices.registry.in_force("ab1263", Mode.TEST)
        await asyncio.gather(
            *(
                acknowledge(deployment.acknowledgments, _principal(account_id), notice, _SUBMISSION)
                for _ in range(number)
            )
        )
        await deployment.log.seal.settle()


def _principal(account_id: str) -> Principal:
    return Principal(
        key_id="key_of_this_test",
        account_id=account_id,
        mode=Mode.TEST,
        scopes=VENDOR_SCOPES,
        credential="secret_key",
    )


_SUBMISSION = Submission(
    initials_per_line=["A", "B", "C", "D"],
    session_id="cs_1",
    cbid=None,
    notice_version=None,
    origin=NO_ONE,
)


async def _make(bench: Bench, account_id: str) -> tuple[str, bytes, bytes]:
    principal = _principal(account_id)
    async with open_deployment(load_settings(bench.environment)) as deployment:
        notice = await deployment.notices.registry.in_force("ab1263", Mode.TEST)
        receipt = await acknowledge(deployment.acknowledgments, principal, notice, _SUBMISSION)
        await deployment.log.seal.settle()
        return (
            receipt.id,
            await proof(deployment.acknowledgments, principal, receipt.id),
            await deployment.log.policy.text(Mode.TEST),
        )
