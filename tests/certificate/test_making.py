"""Making certificates: the same bytes each time, outside of the request loop, within bounds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from hashlib import sha256

import pytest

from countersign.acknowledgments import certificate
from countersign.acknowledgments.certificate import WAITING_MAX, Certificates, make_certificate
from countersign.acknowledgments.certificate_facts import CertificateFacts
from countersign.errors import Overloaded
from tests.certificate.facts import made_facts

ELSEWHERE = """
from hashlib import sha256
from countersign.acknowledgments.certificate import make_certificate
from tests.certificate.facts import made_facts
print(sha256(make_certificate(made_facts())).hexdigest())
"""


def test_the_same_facts_give_the_same_bytes_in_any_process() -> None:
    """A bundle that is asked for again is the same file: no clock, no chance, no environment."""
    make_certificate(made_facts({"session_id": "another one before it"}))
    here = sha256(make_certificate(made_facts())).hexdigest()
    told = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        env={"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.strip() == here


async def _many() -> tuple[list[bytes], int]:
    certificates = Certificates()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    counting = asyncio.create_task(count())
    made = await asyncio.gather(*(certificates.make(made_facts(), "acct_1") for _ in range(4)))
    counting.cancel()
    await certificates.close()
    return made, turns


def test_the_loop_goes_on_while_certificates_are_made() -> None:
    """The compiler does not hold up the requests of others."""
    made, turns = asyncio.run(_many())
    assert set(made) == {make_certificate(made_facts())}
    assert turns > 4


async def _crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def slow(_: object) -> bytes:
        gate.wait(30)
        return b"%PDF-"

    monkeypatch.setattr(certificate, "make_certificate", slow)
    certificates = Certificates()
    inside = [
        asyncio.create_task(certificates.make(made_facts(), "acct_1"))
        for _ in range(WAITING_MAX + 1)
    ]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded) as refused:
        await certificates.make(made_facts(), "acct_1")
    assert refused.value.retry_after == 5
    gate.set()
    assert await asyncio.gather(*inside) == [b"%PDF-"] * (WAITING_MAX + 1)
    assert await certificates.make(made_facts(), "acct_1") == b"%PDF-"
    await certificates.close()


def test_a_crowd_has_to_come_back_and_those_inside_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One in the making and thirty-two waiting; more would only wait without a result."""
    asyncio.run(_crowd(monkeypatch))


async def _neighbours(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str | None], int]:
    gate, made = threading.Event(), []

    def slow(facts: CertificateFacts) -> bytes:
        gate.wait(30)
        made.append(facts.account_name)
        return b"%PDF-"

    monkeypatch.setattr(certificate, "make_certificate", slow)
    certificates = Certificates()

    async def ask(account: str) -> bytes:
        return await certificates.make(made_facts(account_name=account), account)

    crowd = [asyncio.create_task(ask("hostile")) for _ in range(48)]
    await asyncio.sleep(0)
    innocent = [asyncio.create_task(ask("innocent")) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    outcomes = await asyncio.gather(*crowd, return_exceptions=True)
    assert await asyncio.gather(*innocent) == [b"%PDF-"] * 3
    await certificates.close()
    return made, sum(isinstance(outcome, Overloaded) for outcome in outcomes)


def test_an_account_that_asks_for_many_holds_no_other_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It alone is refused what is too much, and a neighbour waits for one of its at most."""
    made, refused = asyncio.run(_neighbours(monkeypatch))
    assert refused == 48 - (WAITING_MAX + 1)
    assert made[:6] == ["hostile", "innocent"] * 3


def test_two_threads_may_ask_at_once() -> None:
    """A second deployment in the same process, as in tests and in commands, does not fail."""
    made: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: made.append(make_certificate(made_facts())))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 3
    assert len(set(made)) == 1
