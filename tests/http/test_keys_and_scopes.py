"""Authentication: API keys, their form, lifetime and scopes."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from countersign.base.values import Mode
from countersign.core.access.key import (
    ENTROPY_BYTES,
    PEOPLE_SCOPES,
    STAFF_SCOPES,
    KeyKind,
    Scope,
    compose_key,
)
from countersign.core.gate.route import Route
from countersign.server.app import route_table
from tests.http import wire
from tests.http.backstage import Operator, Vendor, make_client
from tests.http.calls import SHIPPED_NOTICE, message, refusal
from tests.support.service import Deployment, Server

pytestmark = pytest.mark.one_engine

PATH = "/v1/notices"
KEYED = [route for route in route_table() if route.scope is not None and not route.console]


def get(server: Server, authorization: str | None) -> httpx2.Response:
    with make_client(server) as client:
        headers = {} if authorization is None else {"Authorization": authorization}
        return client.get(PATH, headers=headers)


def ask(client: httpx2.Client, route: Route[Any]) -> httpx2.Response:
    """Call the route in a way that is refused late, if at all."""
    path = re.sub(r"\{.*\}", "unknown", route.path)
    return client.request(route.method, path, json={} if route.request else None)


@pytest.mark.parametrize(
    "authorization", [None, "", "Basic dXNlcjpwYXNz", "Bearer", "Token abc", "csign_sk"]
)
def test_without_a_bearer_token_the_answer_is_unauthorized(
    server: Server, authorization: str | None
) -> None:
    answer = get(server, authorization)
    assert refusal(answer) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].split()[0] == "Bearer"
    assert "error=" not in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    ("authorization", "words"),
    [
        (None, "No API key was sent."),
        ("Basic Y3NpZ246", "the form `Bearer <API_KEY>`"),
        ("csign_sk_test_x", "without the word Bearer"),
    ],
)
def test_the_message_says_how_to_send_the_key(
    server: Server, authorization: str | None, words: str
) -> None:
    text = message(get(server, authorization))
    assert words in text
    assert "Authorization: Bearer <API_KEY>" in text


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_is_accepted_in_any_letter_case(
    server: Server, operator: Operator, account: str, scheme: str
) -> None:
    key = operator.key(account)
    assert get(server, f"{scheme} {key.token}").status_code == 200


def test_an_invalid_token_is_an_invalid_api_key(
    server: Server, operator: Operator, account: str
) -> None:
    token = operator.key(account).token
    unknown = compose_key(KeyKind.SECRET, Mode.TEST, secrets.token_bytes(ENTROPY_BYTES))
    last = token[-1]
    refused = {
        "wrong checksum": token[:-1] + ("a" if last != "a" else "b"),
        "unknown": unknown,
        "of another mode": token.replace("_test_", "_live_"),
        "cut short": token[:-1],
        "too long": token + "A",
        "in another case": token.swapcase(),
        "nonsense": "nonsense",
        "very long": "x" * 5000,
        "two words": token + " " + token,
    }
    for case, text in refused.items():
        answer = get(server, f"Bearer {text}")
        assert refusal(answer) == (401, "invalid_api_key"), case
        challenge = answer.headers["WWW-Authenticate"]
        assert challenge.startswith("Bearer "), case
        assert 'error="invalid_token"' in challenge, case


def test_a_token_of_odd_bytes_is_an_invalid_api_key(server: Server) -> None:
    header = (b"Authorization", b"Bearer \xff\xfe\xc3\x28")
    answer = wire.request(server.url, PATH.encode(), headers=(header,))
    assert answer.status == 401
    assert b'"invalid_api_key"' in answer.body


def test_keys_describe_themselves(operator: Operator, account: str) -> None:
    """Secret scanners and people recognise them."""
    test, live, restricted = operator.keys(
        account, [("test", None), ("live", None), ("test", [Scope.ACKS_READ])]
    )
    body = "[0-9A-Za-z]{38}"
    assert re.fullmatch(f"csign_sk_test_{body}", test.token)
    assert re.fullmatch(f"csign_sk_live_{body}", live.token)
    assert re.fullmatch(f"csign_rk_test_{body}", restricted.token)


def test_every_operation_with_a_scope_needs_a_key(server: Server) -> None:
    assert len(KEYED) >= 8
    with make_client(server) as client:
        for route in KEYED:
            assert refusal(ask(client, route)) == (401, "unauthorized"), route.path


def test_every_operation_needs_its_own_scope_and_no_other(
    server: Server, operator: Operator, account: str
) -> None:
    """A key with every other scope is refused; a key with this one alone is let in."""
    of_keys = set(Scope) - PEOPLE_SCOPES
    wanted = [
        (kind, [route.scope] if kind == "own" else sorted(of_keys - {route.scope}))
        for route in KEYED
        for kind in ("own", "others")
        if route.scope is not None
    ]
    keys = operator.keys(account, [("test", scopes) for _, scopes in wanted])
    for route, own, others in zip(KEYED, keys[::2], keys[1::2], strict=True):
        with make_client(server, others.token) as client:
            answer = ask(client, route)
        assert refusal(answer) == (403, "forbidden"), route.path
        challenge = answer.headers["WWW-Authenticate"]
        assert 'error="insufficient_scope"' in challenge
        assert f'scope="{route.scope}"' in challenge
        with make_client(server, own.token) as client:
            answer = ask(client, route)
        assert answer.is_success or refusal(answer)[1] not in {"forbidden", "invalid_api_key"}


def test_a_key_without_scopes_has_all_that_a_vendors_server_needs(
    deployment: Deployment, account: str
) -> None:
    made = deployment.read("keys", "create", "--account", account, "--mode", "test")
    assert {"keys:manage", "erasure:write", "buyers:review"} <= STAFF_SCOPES
    assert set(made["scopes"]) == set(Scope) - STAFF_SCOPES


def test_a_new_key_works_at_once(server: Server, operator: Operator, account: str) -> None:
    for _ in range(3):
        assert get(server, f"Bearer {operator.key(account).token}").status_code == 200


def test_a_revoked_key_is_refused_within_five_seconds(
    server: Server, operator: Operator, account: str
) -> None:
    key = operator.key(account)
    with make_client(server, key.token) as client:
        assert client.get(PATH).status_code == 200
        operator.revoke(key.id)
        _refused_after(5.0, lambda: client.get(PATH))


def test_revoking_one_key_leaves_the_others(
    server: Server, operator: Operator, account: str
) -> None:
    revoked, other = operator.keys(account, [("test", None), ("test", None)])
    operator.revoke(revoked.id)
    assert refusal(get(server, f"Bearer {revoked.token}")) == (401, "invalid_api_key")
    assert get(server, f"Bearer {other.token}").status_code == 200


def test_an_expired_key_is_refused(server: Server, operator: Operator, account: str) -> None:
    past, to_come = (
        operator.key(account, lifetime=timedelta(hours=hours)).token for hours in (-1, 1)
    )
    assert refusal(get(server, f"Bearer {past}")) == (401, "invalid_api_key")
    assert get(server, f"Bearer {to_come}").status_code == 200


def test_a_key_that_expires_while_it_is_in_use_is_refused(
    server: Server, operator: Operator, account: str
) -> None:
    lifetime = timedelta(seconds=2)
    began = time.monotonic()
    key = operator.key(account, lifetime=lifetime)
    with make_client(server, key.token) as client:
        client.get(PATH)
        left = began + lifetime.total_seconds() - time.monotonic()
        _refused_after(left + 1, lambda: client.get(PATH))


def test_a_rotated_key_and_its_successor_both_work_during_the_overlap(
    server: Server, operator: Operator, account: str
) -> None:
    old = operator.key(account, scopes=[Scope.NOTICES_READ])
    successor = operator.rotate(old.id, timedelta(hours=1))
    assert successor.token != old.token
    for token in (old.token, successor.token):
        assert get(server, f"Bearer {token}").status_code == 200


def test_a_rotated_key_is_refused_after_the_overlap(
    server: Server, operator: Operator, account: str
) -> None:
    old = operator.key(account)
    with make_client(server, old.token) as client:
        client.get(PATH)
        successor = operator.rotate(old.id, timedelta(seconds=1))
        _refused_after(1.0 + 5.0, lambda: client.get(PATH))
    assert get(server, f"Bearer {successor.token}").status_code == 200


def test_a_successor_has_the_powers_of_the_key_it_replaces_and_no_more(
    server: Server, operator: Operator, account: str
) -> None:
    old = operator.key(account, "live", scopes=[Scope.NOTICES_READ])
    successor = operator.rotate(old.id, timedelta(hours=1))
    with make_client(server, successor.token) as client:
        path = f"{PATH}/{SHIPPED_NOTICE}"
        assert refusal(client.get(path)) == (409, "notice_not_reviewed"), "the mode is kept"
        assert refusal(client.get("/v1/acknowledgments")) == (403, "forbidden")


def test_both_keys_of_a_rotation_belong_to_the_same_account(
    server: Server, operator: Operator, vendor: Vendor
) -> None:
    old = operator.key(vendor.account_id)
    successor = operator.rotate(old.id, timedelta(hours=1))
    body = {"initials_per_line": ["A", "B", "C", "D"]}
    with make_client(server, old.token) as client:
        made = client.post(f"{PATH}/{SHIPPED_NOTICE}/acknowledge", json=body).json()
    with make_client(server, successor.token) as client:
        assert client.get(f"/v1/acknowledgments/{made['ack_id']}").status_code == 200


def _refused_after(seconds: float, call: Callable[[], httpx2.Response]) -> None:
    """A call that begins later than this is refused; earlier ones may be."""
    deadline = time.monotonic() + seconds
    while True:
        late = time.monotonic() > deadline
        answer = call()
        if not answer.is_success:
            assert refusal(answer) == (401, "invalid_api_key")
            return
        assert not late, "the key still works"
        time.sleep(0.1)
