"""An acknowledgment with its evidence, made without starting a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from countersign.bootstrap import open_deployment
from countersign.config import load_settings
from countersign.domain.key import VENDOR_SCOPES, Principal
from countersign.domain.mode import Mode
from countersign.domain.origin import Origin
from countersign.services.acknowledge import Submission
from tests.cli.conftest import Bench

NOBODY = Origin(
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


async def _make(bench: Bench, account_id: str) -> tuple[str, bytes, bytes]:
    principal = Principal(
        key_id="key_of_this_test",
        account_id=account_id,
        mode=Mode.TEST,
        scopes=VENDOR_SCOPES,
        credential="secret_key",
    )
    async with open_deployment(load_settings(bench.environment)) as deployment:
        notice = await deployment.registry.in_force("ab1263", Mode.TEST)
        submission = Submission(
            initials_per_line=["A", "B", "C", "D"],
            session_id="cs_1",
            cbid=None,
            notice_version=None,
            origin=NOBODY,
        )
        receipt = await deployment.acknowledge(principal, notice, submission)
        await deployment.seal_log.settle()
        return (
            receipt.ack_id,
            await deployment.prove.proof(principal, receipt.ack_id),
            await deployment.policy.text(Mode.TEST),
        )
