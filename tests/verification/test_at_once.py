"""Many verify one session at once, at one server and at two: one cbid."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx2
import pytest

from tests.http.backstage import Operator, another_deployment, make_client
from tests.support import postgres
from tests.support.providers import playing
from tests.support.service import Server, running_server
from tests.verification.conftest import MakeVendor
from tests.verification.live import VERIFY, LiveVendor, live_vendor

pytestmark = pytest.mark.both_engines

AT_ONCE = 20


def cbids(answers: Sequence[httpx2.Response]) -> set[str]:
    """The cbids of answers that must all be verdicts."""
    assert {answer.status_code for answer in answers} == {200}, [a.text for a in answers]
    return {answer.json()["cbid"] for answer in answers}


@pytest.mark.parametrize("plays", ["verified", "underage", "pending", "requires_input"])
def test_concurrent_verifies_of_one_session_give_one_cbid(vendor: LiveVendor, plays: str) -> None:
    """Whatever the result; with one row for each unique object."""
    session = vendor.part(plays)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(lambda _: vendor.verify(session), range(AT_ONCE)))
    assert len(cbids(answers)) == 1
    followed = plays in {"pending", "requires_input"}
    assert len(vendor.rows("pending_sessions")) == followed


def test_two_accounts_at_once_lead_one_session_to_one_buyer(vendor_with: MakeVendor) -> None:
    """Whichever of them is first."""
    played = vendor_with("stripe").playing
    vendors = [vendor_with(played) for _ in range(4)]
    session = played.part("verified", 2)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(lambda v: v.verify(session), vendors * 5))
    assert len(cbids(answers)) == 1
    assert sum(len(vendor.rows("buyers")) for vendor in vendors) <= 1


def test_two_concurrent_sessions_of_one_document_lead_to_one_buyer(vendor_with: MakeVendor) -> None:
    """Neither was here before; the document is the same."""
    vendor = vendor_with("onfido")
    sessions = [s for s in vendor.playing.simulator.sessions if s.scenario == "verified"]
    by_person: dict[tuple[str, ...], list[int]] = {}
    for number, session in enumerate(sessions):
        by_person.setdefault(session.personal, []).append(number)
    twice = next(numbers for numbers in by_person.values() if len(numbers) > 1)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(lambda n: vendor.verify(sessions[n]), twice * 8))
    assert len(cbids(answers)) == 1


@pytest.mark.postgres
def test_two_servers_that_judge_one_session_at_once_agree(
    postgres_server: postgres.PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On one database; no one gets an error."""
    own = another_deployment(tmp_path_factory.mktemp("two") / "data", postgres_server)
    with ExitStack() as stack:
        servers: list[Server] = [stack.enter_context(running_server(own)) for _ in range(2)]
        operator = stack.enter_context(Operator(own))
        played = stack.enter_context(playing("stripe"))
        vendor = stack.enter_context(live_vendor(operator, servers[0], played))
        token = operator.key(vendor.account_id, "live").token
        clients = [stack.enter_context(make_client(server, token)) for server in servers]
        threads = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        for number in range(4):
            session = played.part("verified", number)
            body = {
                "provider_identity_session_id": session.session_id,
                "shipping_zip": session.shipping_zip,
            }
            sent = [threads.submit(clients[n % 2].post, VERIFY, json=body) for n in range(AT_ONCE)]
            assert len(cbids([one.result() for one in sent])) == 1
        assert operator.rows("SELECT * FROM pending_sessions") == []
