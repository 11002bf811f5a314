"""Making certificates: the same bytes each time, outside of the request loop, within bounds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from hashlib import sha256

import pytest

from countersign.base.errors import Overloaded
from countersign.core.acknowledgments.room import DOCUMENTS_WAITING_MAX, Certificates
from tests.certificate.facts import made_dossier, make_certificate

ELSEWHERE = """
from hashlib import sha256
from tests.certificate.facts import made_dossier, make_certificate
print(sha256(make_certificate(made_dossier())).hexdigest())
"""


def test_the_same_facts_give_the_same_bytes_in_any_process() -> None:
    """A dossier requested again is the same file: no clock, chance or environment matters."""
    make_certificate(made_dossier({"session_id": "another one before it"}))
    here = sha256(make_certificate(made_dossier())).hexdigest()
    answer = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        env={"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert answer.strip() == here


def made() -> bytes:
    return make_certificate(made_dossier())


async def _many() -> tuple[list[bytes], int]:
    certificates = Certificates()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    counting = asyncio.create_task(count())
    found = await asyncio.gather(*(certificates.run(made, "acct_1") for _ in range(4)))
    counting.cancel()
    await certificates.close()
    return found, turns


def test_the_event_loop_runs_while_certificates_are_made() -> None:
    """The compiler does not hold up the requests of others."""
    found, turns = asyncio.run(_many())
    assert set(found) == {made()}
    assert turns > 4


async def _crowd() -> None:
    gate = threading.Event()

    def slow() -> bytes:
        gate.wait(30)
        return b"%PDF-"

    certificates = Certificates()
    inside = [
        asyncio.create_task(certificates.run(slow, "acct_1"))
        for _ in range(DOCUMENTS_WAITING_MAX + 1)
    ]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded) as refused:
        await certificates.run(slow, "acct_1")
    assert refused.value.retry_after == 5
    gate.set()
    assert await asyncio.gather(*inside) == [b"%PDF-"] * (DOCUMENTS_WAITING_MAX + 1)
    assert await certificates.run(slow, "acct_1") == b"%PDF-"
    await certificates.close()


def test_excess_callers_are_refused_and_waiting_ones_served() -> None:
    """One in the making and thirty-two waiting; more would only wait without a result."""
    asyncio.run(_crowd())


async def _neighbours() -> tuple[list[str], int]:
    gate, order = threading.Event(), list[str]()
    certificates = Certificates()

    async def ask(account: str) -> bytes:
        def slow() -> bytes:
            gate.wait(30)
            order.append(account)
            return b"%PDF-"

        return await certificates.run(slow, account)

    crowd = [asyncio.create_task(ask("hostile")) for _ in range(48)]
    await asyncio.sleep(0)
    innocent = [asyncio.create_task(ask("innocent")) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    outcomes = await asyncio.gather(*crowd, return_exceptions=True)
    assert await asyncio.gather(*innocent) == [b"%PDF-"] * 3
    await certificates.close()
    return order, sum(isinstance(outcome, Overloaded) for outcome in outcomes)


def test_an_account_with_many_requests_delays_no_other() -> None:
    """Only that account is refused, and a neighbour waits for at most one of its documents."""
    order, refused = asyncio.run(_neighbours())
    assert refused == 48 - (DOCUMENTS_WAITING_MAX + 1)
    assert order[:6] == ["hostile", "innocent"] * 3


def test_two_threads_may_ask_at_once() -> None:
    """A second deployment in the same process, as in tests and in commands, does not fail."""
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(made())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
