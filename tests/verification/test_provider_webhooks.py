"""Where the providers' messages arrive: whatever is not authentic is refused, and does nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import cycle
from typing import Final

import httpx2
import pytest

from countersign_simulators.registry import SIMULATORS
from tests.http import wire
from tests.support.service import Server
from tests.verification.conftest import MakeVendor
from tests.verification.live import LiveVendor

SIZE_MAX: Final = 256 * 1024
REFUSED: Final = (400, "invalid_webhook")
NOT_FOUND: Final = (404, "not_found")
SIGNATURES: Final = {
    "stripe": ("stripe-signature",),
    "persona": ("persona-signature",),
    "veriff": ("x-hmac-signature",),
    "plaid": ("plaid-verification",),
    "didit": ("x-signature-v2", "x-timestamp"),
    "onfido": ("x-sha2-signature",),
}
"""The headers without which a message is not authentic."""


def outcome(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of a refusal; the code is `taken` for an accepted message."""
    return answer.status_code, answer.json().get("error", {"code": "taken"})["code"]


def broken(value: str) -> Iterator[str]:
    """A header's value, malformed in every way."""
    yield from ("", " ", ",", "=", ";", "t=,v1=", "v1", "\\0", "null", "[]", "{}", "a" * 6000)
    yield from (value[:-1], value[1:], value + "0", "x" + value, value[::-1], value.swapcase())
    yield from (f"{value}x, {value}y", f"x{value}", value.replace("=", ":"), value.replace(".", ""))
    yield from ("é" * 64, "0" * 64, "t=1,v1=" + "0" * 64, "t=99999999999999999999,v1=00", "-1")
    yield from ("eyJhbGciOiJub25lIn0.e30.", "a.b.c", "..", "t=1,t=2,v1=0,v1=0", "١٢٣")


@pytest.fixture
def followed(vendor_with: MakeVendor, request: pytest.FixtureRequest) -> LiveVendor:
    """Give a vendor of this provider with a session that is followed."""
    vendor = vendor_with(request.param)
    assert vendor.verify(vendor.part("pending")).json()["status"] == "pending"
    return vendor


def enqueued(vendor: LiveVendor) -> object:
    """The effect of a message: it is marked as seen, and the next poll is scheduled."""
    due = [row["next_poll_at"] for row in vendor.rows("pending_sessions")]
    return len(vendor.rows("provider_messages")), len(due)


@pytest.mark.parametrize("followed", SIMULATORS, indirect=True)
def test_every_malformed_header_is_refused_and_enqueues_nothing(followed: LiveVendor) -> None:
    """By the provider's published recipe; the unchanged message is accepted."""
    vendor = followed
    made = vendor.playing.simulator.webhook(vendor.part("pending").session_id)
    needed = SIGNATURES[vendor.playing.name]
    # Without the provider's further members: Stripe's v0 for tests, Didit's other signatures.
    sent = {name.lower(): value.partition(",v0=")[0] for name, value in made.headers}
    good = {name: value for name, value in sent.items() if name in (*needed, "content-type")}
    good |= {name: value for name, value in sent.items() if "auth-client" in name}
    before = enqueued(vendor)
    with httpx2.Client(base_url=vendor.server.url, timeout=30.0, verify=False) as stranger:

        def post(headers: Mapping[str, str], body: bytes = made.body) -> httpx2.Response:
            raw = [(n.encode(), v.strip().encode()) for n, v in headers.items()]
            return stranger.post(vendor.webhook_path, content=body, headers=raw)

        for name in needed:
            without = {n: v for n, v in good.items() if n != name}
            assert outcome(post(without)) == REFUSED, f"without {name}"
            for value in broken(good[name]):
                # Hexadecimal digits mean the same in capitals.
                if value.strip().lower() != good[name].lower():
                    assert outcome(post(good | {name: value})) == REFUSED, (name, value)
        for body in (b"", made.body + b"x", made.body[:-1], b"{}", b"[]", b"\xff", b"0"):
            assert outcome(post(good, body)) == REFUSED, body
        assert enqueued(vendor) == before
        for _ in range(2):
            taken = post(good)
            assert (taken.status_code, taken.json()) == (200, {})
    assert len(vendor.rows("provider_messages")) == 1


def test_a_message_to_an_unknown_account_is_not_found(vendor: LiveVendor) -> None:
    """An unknown account, an unknown provider, another provider than the account's, a bogus path.

    All look alike: a stranger learns of no account which provider it uses.
    """
    made = vendor.playing.simulator.webhook(vendor.part("verified").session_id)
    account = vendor.account_id
    paths = [
        "", "/", "/stripe", "/stripe/", f"/{account}", f"/persona/{account}", f"/nobody/{account}",
        "/stripe/acct_00000000000000000000000000", f"/STRIPE/{account}", f"/stripe/{account}/",
        f"/stripe/{account}/more", f"/stripe//{account}", f"//stripe/{account}",
        f"/stripe/{account}%2F", f"/stripe/{account}%00", f"/stripe%2F{account}/x",
        "/stripe/" + "a" * 4000, "/stripe/%ff", "/../v1/notices", "/stripe/*",
    ]  # fmt: skip
    answers = set()
    with httpx2.Client(base_url=vendor.server.url, timeout=30.0, verify=False) as stranger:
        for path in paths:
            answer = stranger.post(
                f"/v1/provider_webhooks{path}", content=made.body, headers=dict(made.headers)
            )
            assert answer.status_code in {404, 400}, (path, answer.text)
            if path.startswith(("/persona/", "/nobody/", "/stripe/acct_00")):
                assert outcome(answer) == NOT_FOUND
                answers.add(answer.content)
        assert len(answers) == 1
        wrong = stranger.get(vendor.webhook_path)
        assert outcome(wrong) == (405, "method_not_allowed")
    assert vendor.rows("provider_messages") == []


def test_a_message_may_have_256_kib(vendor: LiveVendor) -> None:
    """A larger one is refused before anything of it is read."""
    made = vendor.playing.simulator.webhook(vendor.part("verified").session_id)
    for size, expected in ((SIZE_MAX, REFUSED), (SIZE_MAX + 1, (413, "payload_too_large"))):
        answer, _ = vendor.send_webhook(
            vendor.part("verified"), (dict(made.headers), made.body.ljust(size))
        )
        assert outcome(answer) == expected, size
        message = answer.json()["error"]["message"]
        assert (f"larger than {1024 * 1024} bytes" in message) == (size > 1024 * 1024)


def test_the_body_of_a_message_for_no_account_is_not_waited_for(server: Server) -> None:
    """Account and provider are in the path: without them, nothing is kept in memory."""
    head = (
        "POST /v1/provider_webhooks/stripe/acct_00000000000000000000000000 HTTP/1.1\r\n"
        f"Host: countersign\r\nContent-Length: {SIZE_MAX}\r\n\r\n"
    )
    assert wire.send(server.url, head.encode()).status == 404


def test_unfinished_messages_for_one_account_do_not_block_others(
    vendor_with: MakeVendor,
) -> None:
    """Beyond 1 MiB of unfinished messages, the account's next ones are asked to retry."""
    flooded, innocent = vendor_with("stripe"), vendor_with("persona")
    host, port = flooded.server.url.removeprefix("http://").split(":")
    head = (
        f"POST {flooded.webhook_path} HTTP/1.1\r\nHost: countersign\r\n"
        f"Content-Length: {SIZE_MAX}\r\n\r\n"
    ).encode()
    sizes = cycle((SIZE_MAX - 1, SIZE_MAX - 1, 30_000, 4_000, 1_000))
    with ExitStack() as hostile:
        while (answer := flooded.send_webhook(flooded.part("verified"))[0]).status_code == 200:
            connection = hostile.enter_context(socket.create_connection((host, int(port))))
            connection.sendall(head + b" " * next(sizes))
        assert outcome(answer) == (503, "overloaded")
        assert int(answer.headers["Retry-After"]) >= 1
        assert innocent.send_webhook(innocent.part("verified"))[0].status_code == 200
    while flooded.send_webhook(flooded.part("verified"))[0].status_code != 200:
        pass  # the server notices that the connections are closed


def test_no_key_is_needed_and_none_changes_anything(vendor: LiveVendor) -> None:
    """The signature alone counts: a key of the account does not make a message authentic."""
    path = vendor.webhook_path
    assert outcome(vendor.live.post(path, content=b"{}")) == REFUSED
    answer, _ = vendor.send_webhook(vendor.part("verified"))
    assert answer.status_code == 200
