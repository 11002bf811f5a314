"""Required headers of a person's call, and closed operations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.errors import InvalidRequest
from countersign.core.access.audit import AuditAction, AuditEntry, find_audit
from countersign.core.access.key import LIVE_SCOPES
from countersign.core.access.reach import DeploymentReach
from countersign.core.access.role import Role
from countersign.core.gate.route import ACCOUNT, MODE, REASON, Call, Route, place, reason
from countersign.server.app import route_table
from countersign.server.console_host import PageReply, PageRequest
from tests.people.crew import Console, code_of, in_console
from tests.remembered.device import ORIGIN

pytestmark = pytest.mark.one_engine

LIST = "/v1/acknowledgments"
ENDPOINTS = "/v1/webhook_endpoints"


async def entries(console: Console, action: AuditAction) -> list[AuditEntry]:
    found = await console.deployment.database.read(find_audit, None)
    return [entry for entry in found if entry.action is action]


def test_a_member_of_one_account_has_no_role_in_another(tmp_path: Path) -> None:
    """The member does not even learn whether such an account exists."""

    async def work(console: Console) -> list[str]:
        own, other = await console.account("own"), await console.account("other")
        person = await console.person("Ada", Role.OWNER, own)
        missing = "acct_01km9x4v8gen3rr1p6q1s2t3v4"
        asked = [own, other, missing, "acct_", "\x7f", "x" * 3000]
        return [
            (await console.ask(person.session, ENDPOINTS, account=a, mode="live")).code
            for a in asked
        ] + [(await console.ask(person.session, ENDPOINTS)).code]

    assert in_console(tmp_path, work) == ["", *["forbidden"] * 6]


def test_modes_do_not_cross(tmp_path: Path) -> None:
    """Objects of test mode do not exist in live mode."""

    async def work(console: Console) -> tuple[int, ...]:
        account = await console.account("vendor")
        person = await console.person("Ada", Role.OWNER, account)
        body = {"url": "https://shop.example/hooks"}
        made = await console.ask(
            person.session, ENDPOINTS, "POST", account=account, mode="test", body=body
        )
        found = [
            len(
                (await console.ask(person.session, ENDPOINTS, account=account, mode=m)).data["data"]
            )
            for m in ("test", "live")
        ]
        return (made.status, *found)

    assert in_console(tmp_path, work) == (200, 1, 0)


def test_test_mode_changes_nothing_shared_with_live_mode(tmp_path: Path) -> None:
    """Every operation of accounts and their people that changes something; a look is answered."""
    routes = [one for one in route_table() if one.scope in LIVE_SCOPES and one.method != "GET"]
    shared = [one for one in routes if one.reach is not DeploymentReach]
    assert len(shared) > 8

    async def work(console: Console) -> set[tuple[str, str]]:
        account = await console.account("vendor")
        person = await console.person("Ada", Role.OWNER)

        async def ask(route: Route[Any], mode: str) -> str:
            path = re.sub(r"{.*}", account, route.path)
            reply = await console.ask(
                person.session, path, route.method, account=account, mode=mode, body={"x": 1}
            )
            return reply.code

        looked = await console.ask(person.session, "/v1/members", account=account, mode="test")
        assert looked.ok
        return {(await ask(one, "test"), await ask(one, "live")) for one in shared}

    refused, allowed = zip(*in_console(tmp_path, work), strict=True)
    assert set(refused) == {"mode_mismatch"}
    assert "mode_mismatch" not in allowed


def test_a_call_about_an_account_names_the_mode(tmp_path: Path) -> None:
    """Omitting the mode never confuses test with live."""

    async def work(console: Console) -> list[str]:
        account = await console.account("vendor")
        person = await console.person("Ada", Role.OWNER, account)
        return [
            (await console.ask(person.session, ENDPOINTS, account=account, mode=mode)).code
            for mode in ("", "Test", "prod", "live, test", "live")
        ]

    assert in_console(tmp_path, work) == [*["invalid_request"] * 4, ""]


def test_personal_data_is_shown_for_a_recorded_reason(tmp_path: Path) -> None:
    """The audit has who read which data and why, before it is shown."""

    async def work(console: Console) -> tuple[list[str], list[AuditEntry], str]:
        account = await console.account("vendor")
        person = await console.person("Ada", Role.COMPLIANCE)
        asked = [None, "", "no", "x" * 201, "a\nb", "é" * 200, "Case 26-2"]
        codes = []
        for said in asked:
            answer = await console.ask(
                person.session, LIST, account=account, mode="live", reason=said
            )
            codes.append(answer.code)
        return codes, await entries(console, AuditAction.PERSONAL_DATA_SHOWN), person.id

    codes, kept, person_id = in_console(tmp_path, work)
    assert codes == [*["invalid_request"] * 5, "", ""]
    assert [entry.details["reason"] for entry in kept] == ["é" * 200, "Case 26-2"]
    assert {entry.actor for entry in kept} == {person_id}
    assert kept[0].details["operation"] == "listAcknowledgments"


def test_data_not_shown_is_not_audited(tmp_path: Path) -> None:
    """So that no text typed into an address becomes part of the audit."""

    async def work(console: Console) -> tuple[str, int]:
        account = await console.account("vendor")
        person = await console.person("Ada", Role.COMPLIANCE)
        path = f"{LIST}/jane@example.com"
        answer = await console.ask(
            person.session, path, account=account, mode="live", reason="Case 26-2"
        )
        return answer.code, len(await entries(console, AuditAction.PERSONAL_DATA_SHOWN))

    assert in_console(tmp_path, work) == ("not_found", 0)


def test_the_audit_names_the_person_who_acts(tmp_path: Path) -> None:
    """Not the session, and not the user under whom the server runs."""

    async def work(console: Console) -> tuple[list[str], str]:
        account = await console.account("vendor")
        person = await console.person("Ada", Role.DEVELOPER, account)
        body = {"url": "https://shop.example/hooks"}
        await console.ask(
            person.session, ENDPOINTS, "POST", account=account, mode="test", body=body
        )
        await console.ask(person.session, "/v1/test/fault", "DELETE", account=account, mode="test")
        made = await entries(console, AuditAction.WEBHOOK_ENDPOINT_CREATED)
        called = await entries(console, AuditAction.CALLED)
        return [entry.actor for entry in made + called], person.id

    actors, person_id = in_console(tmp_path, work)
    assert actors == [person_id, person_id]


def test_destructive_acts_need_a_recent_passkey(tmp_path: Path) -> None:
    """Five minutes after the passkey was used it has to be used again; then it works at once."""

    async def work(console: Console) -> list[str]:
        account = await console.account("vendor")
        person = await console.person("Ada", Role.DEVELOPER, account)
        codes = []

        async def remove() -> None:
            path, named = f"{ENDPOINTS}/whe_01km9x4v8gen3rr1p6q1s2t3v4", {"account": account}
            answer = await console.ask(person.session, path, "DELETE", mode="test", **named)
            codes.append(answer.code)

        await remove()
        console.clock.seconds += 301
        await remove()
        asked = console.host.passkey_options(person.session)
        assert asked is not None
        options, state = asked
        response = person.passkey.sign(dict(options))
        assert await console.host.freshen(person.session, state, response)
        await remove()
        assert not await console.host.freshen(person.session, state, response)
        return codes

    assert in_console(tmp_path, work) == ["not_found", "passkey_required", "not_found"]


NEEDS_A_PASSKEY = (
    "createKey", "rotateKey", "revokeKey", "publishNotice", "reviewNotice", "withdrawNotice",
    "reinstateNotice", "reviewBuyer", "revokeBuyer", "reinstateBuyer", "erase", "releaseHold",
"releaseMatter")  # fmt: skip


def test_lasting_acts_and_decisions_need_a_recent_passkey(tmp_path: Path) -> None:
    """An open browser makes no key, publishes or signs off no notice, and decides on no buyer."""

    async def work(console: Console) -> list[str]:
        account, owner = await console.account("vendor"), await console.person("Ada", Role.OWNER)
        console.clock.seconds += 301
        done = []
        for route in route_table():
            if route.operation not in NEEDS_A_PASSKEY:
                continue
            path = re.sub(r"\{\w+\}", "nothing_1", route.path)
            for about in ({}, {"account": account, "mode": "test"}):
                answer = await console.ask(owner.session, path, route.method, body={}, **about)
                done += (
                    [] if answer.code in {"passkey_required", "forbidden"} else [route.operation]
                )
        return done

    assert in_console(tmp_path, work) == []
    assert set(NEEDS_A_PASSKEY) <= {route.operation for route in route_table()}


def test_a_passkey_of_another_person_does_not_freshen_a_session(tmp_path: Path) -> None:
    """Nor does a signature made to sign in."""

    async def work(console: Console) -> list[bool]:
        ada = await console.person("Ada", Role.OWNER)
        eve = await console.person("Eve", Role.SUPPORT)
        console.clock.seconds += 400
        outcomes = []
        for asker, signer in ((ada.session, eve), ("", ada)):
            asked = console.host.passkey_options(asker)
            assert asked is not None
            options, state = asked
            response = signer.passkey.sign(dict(options))
            outcomes.append(await console.host.freshen(ada.session, state, response))
        return outcomes

    assert in_console(tmp_path, work) == [False, False]


def test_without_the_console_none_of_its_routes_exist(tmp_path: Path) -> None:
    """Its addresses are unknown paths, and sessions are no keys."""

    async def work(console: Console) -> list[tuple[int, bytes]]:
        ada = await console.person("Ada", Role.OWNER)
        asked = [await console.http("GET", path) for path in ("/console", "/console/x", "/nowhere")]
        asked.append(await console.http("PUT", "/console"))
        named = {"Authorization": f"Bearer {ada.session}"}
        asked.append(await console.http("GET", "/v1/notices", named))
        return [(reply.status, reply.body) for reply in asked]

    found = in_console(tmp_path, work, CONSOLE="false")
    assert [status for status, _ in found] == [404, 404, 404, 404, 401]
    assert len({body for _, body in found[:4]}) == 1
    assert json.loads(found[4][1])["error"]["code"] == "invalid_api_key"


def test_a_console_with_its_own_host_is_nowhere_else(tmp_path: Path) -> None:
    """The public host responds as if there were none."""

    async def work(console: Console) -> list[int]:
        console.app._console.pages = _echo
        hosts = ["localhost:4711", "console.example", "CONSOLE.example", "", "console.example."]
        return [
            (await console.http("GET", "/console", {"Host": host})).status for host in hosts
        ] + [(await console.http("GET", "/console")).status]

    statuses = in_console(tmp_path, work, CONSOLE_URL="https://console.example")
    assert [status == 404 for status in statuses] == [True, False, False, True, True, True]


def test_a_form_of_another_site_is_refused(tmp_path: Path) -> None:
    """Whatever it sends: a browser names where a form comes from."""

    async def work(console: Console) -> list[str]:
        form = {"Host": "localhost:4711", "Content-Type": "application/x-www-form-urlencoded"}
        said = [
            {},
            {"Origin": "null"},
            {"Origin": "https://evil.example"},
            {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"},
            {"Origin": ORIGIN, "Sec-Fetch-Site": "same-site"},
            {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"},
        ]
        installed = console.app._console
        installed.pages = _echo
        replies = [await console.http("POST", "/console/x", form | each, b"a=1") for each in said]
        return [code_of(reply) if reply.status >= 400 else "" for reply in replies]

    assert in_console(tmp_path, work) == [*["origin_not_allowed"] * 5, ""]


async def _echo(request: PageRequest) -> PageReply:
    return PageReply(body=repr(request).encode())


PRINTABLE = st.text(st.characters(codec="utf-8"), max_size=250)


@given(PRINTABLE)
def test_any_header_gives_a_reason_or_a_refusal(text: str) -> None:
    """Between 3 and 200 printable characters, however they are composed."""
    call = call_with(text.encode())
    try:
        given = reason(call)
    except InvalidRequest:
        return
    assert 3 <= len(given) <= 200
    assert given.isprintable()


@given(st.binary(max_size=300))
def test_any_bytes_are_judged(raw: bytes) -> None:
    """A header is what anyone sends."""
    for read in (reason, place):
        try:
            read(call_with(raw))
        except InvalidRequest:
            continue


def call_with(raw: bytes) -> Call:
    names = (REASON, ACCOUNT, MODE)
    return Call(
        method="GET", path="/", query_string=b"", raw_headers=(), peer=None,
        headers=dict.fromkeys(names, raw),
    )  # fmt: skip
