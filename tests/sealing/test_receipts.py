"""Receipts in responses: promised records are sealed, by whichever process and key."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest

from countersign.base.values import Mode, parse_rfc3339
from countersign_evidence.note import parse_note
from countersign_evidence.policy import Policy, parse_policy
from countersign_evidence.proof import parse_proof
from countersign_evidence.receipt import Promise, check_receipt
from tests.sealing.acts import INITIALS, NOTICE, get, policy_of
from tests.sealing.inside import opened, receipt_inside
from tests.sealing.live import answer_live, open_for_live
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.both_engines
BODY = {"initials_per_line": INITIALS}


def acknowledge(client: httpx2.Client, key: str | None = None) -> dict[str, str]:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = client.post(f"/v1/notices/{NOTICE}/acknowledge", json=BODY, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()
    return found


def kept_promise(client: httpx2.Client, answer: dict[str, str], policy: Policy) -> Promise:
    """The receipt, which is about the record in the log."""
    receipt = check_receipt(answer["receipt"].encode(), policy)
    record = parse_proof(get(client, answer["ack_id"], "proof")).extra
    assert record is not None
    assert receipt.digest == sha256(record).digest()
    accepted_at = parse_rfc3339(json.loads(record)["accepted_at"])
    promised = receipt.sealed_by - accepted_at
    assert timedelta(hours=1) <= promised < timedelta(hours=1, seconds=30)
    return receipt


def test_each_answer_promises_its_own_record_with_several_workers_too(own: Deployment) -> None:
    """One signature may cover many of them."""
    key = own.key(own.account("vendor"))
    settings = {"SEAL_WITHIN_SECONDS": "3600", "WORKERS": "2"}
    with running_server(own, **settings) as server, server.client(key) as client:
        with ThreadPoolExecutor(16) as pool:
            answers = [*pool.map(lambda _: acknowledge(client), range(48))]
        policy = policy_of(own)
        found = {kept_promise(client, answer, policy).digest for answer in answers}
    assert len(found) == len(answers)


def test_a_repeated_request_gets_the_same_receipt(own: Deployment) -> None:
    key = own.key(own.account("vendor"))
    with running_server(own) as server, server.client(key) as client:
        assert acknowledge(client, "order-1") == acknowledge(client, "order-1")


def test_during_the_overlap_of_a_rotation_both_keys_promise(
    own: Deployment, tmp_path: Path
) -> None:
    """Readers with only the old key, or only the new one, can hold the log to it."""
    key, live = open_for_live(own, tmp_path)
    before = policy_of(own, "live")
    with running_server(live) as server, server.client(key) as client:
        own.run("log", "rotate-key", "--yes")
        get(client, answer_live(client)["ack_id"], "proof")  # learns of the new key
        receipt = answer_live(client)["receipt"].encode()
    after = policy_of(own, "live")
    assert len(parse_note(receipt.partition(b"\n\n")[2]).signatures) == 2
    newest = parse_policy(f"log {after.logs[-1].vkey}\nquorum none\n".encode())
    assert check_receipt(receipt, before).digest == check_receipt(receipt, newest).digest


def test_without_a_usable_key_an_act_is_accepted_without_a_promise(
    own: Deployment,
) -> None:
    """Trouble with sealing never refuses an act; a promise that nothing supports is not made."""
    account = own.account("vendor")

    async def act() -> dict[str, str | None]:
        async with opened(own) as deployment:
            log = (await deployment.log.seal.current())[Mode.TEST]
            deployment.log.sequencer.learn(log.id, log.keys_revision, [])
            _, receipt = await receipt_inside(deployment, account, NOTICE, Mode.TEST)
            said: dict[str, str | None] = json.loads(receipt.answer)
            return said

    said = asyncio.run(act())
    assert said["ack_id"] is not None
    assert said["receipt"] is None
