"""A person's acts are attributed to that person alone: no key, path or form changes that."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, select

from countersign.base.db.tables import audit_log
from countersign.base.errors import SecondPersonRequired
from countersign.base.values import Mode
from countersign.core.access.account import set_settings
from countersign.core.access.audit import AuditAction, find_audit
from countersign.core.access.key import Scope
from countersign.core.access.keys import create_key
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.role import Role
from countersign.staff.people import roles
from tests.console.test_pages import who_waits
from tests.people.crew import Console, Person, in_console
from tests.support.acts import done

TEST: Final = {"mode": "test"}
SAME: Final = {"idempotency_key": "1"}


async def ask(console: Console, who: Person | str, path: str, body: Any, **about: str) -> Any:  # noqa: ANN401 - JSON
    session = who if isinstance(who, str) else who.session
    answer = await console.ask(session, path, "POST", body=body, **about)
    return answer.data if answer.ok else answer.code


def test_an_idempotency_key_of_another_person_repeats_nothing(tmp_path: Path) -> None:
    """Otherwise one person would get another's response, such as a link."""

    async def work(console: Console) -> None:
        here, there = await console.account("here"), await console.account("there")
        ada = await console.person("Ada", Role.OWNER, here)
        bob = await console.person("Bob", Role.OWNER, here)
        eve = await console.person("Eve", Role.SUPPORT, there)
        about, invite = (
            {"account": here, "mode": "live", **SAME},
            {"name": "Sam", "role": "support"},
        )
        made = await ask(console, ada, "/v1/members", invite, **about)
        assert (await ask(console, ada, "/v1/members", invite, **about)) == made
        assert await ask(console, bob, "/v1/members", invite, **about) == "people_refused"
        for one in (ada, eve):
            ended = await ask(console, one, "/v1/me/sessions/end", {}, **SAME)
            assert ended == {"person_id": one.id, "sessions": 1}
            assert await console.host.who(one.session) is None

    in_console(tmp_path, work)


def test_where_two_decide_one_person_decides_once_with_any_credential(tmp_path: Path) -> None:
    """In a second session, as staff or with a key of the machine: another person is needed."""

    async def work(console: Console) -> None:
        account, access = await console.account("vendor"), console.deployment.access
        await done(set_settings, access, account, reviewers=2)
        await who_waits(console, account)
        about = {"account": account, **TEST}
        ada, bob = [await console.person(n, Role.OWNER, account) for n in ("Ada", "Bob")]
        await done(roles.invite, console.deployment.people, ada.id, Role.OWNER, DEPLOYMENT)
        again = await console.sign_in(ada.passkey)
        assert again is not None
        scopes = frozenset({Scope.BUYERS_REVIEW})
        key = (await done(create_key, access, account, Mode.TEST, scopes)).token
        waits = await console.ask(ada.session, "/v1/buyers/reviews", **about)
        path = f"/v1/buyers/{waits.data['data'][0]['cbid']}/review"

        async def decide(who: Person | str) -> Any:  # noqa: ANN401 - JSON
            body, place = {"decision": "dismiss", "reason": "case 7"}, {} if who is key else about
            return await ask(console, who, path, body, **place)

        assert await decide(key) == SecondPersonRequired.code
        assert (await decide(ada))["proposed"]
        for hand in (ada, again, key):
            assert await decide(hand) == SecondPersonRequired.code
        assert "proposed" not in await decide(bob)

    in_console(tmp_path, work)


def test_the_audit_notes_a_paths_object_only_if_it_is_an_identifier(tmp_path: Path) -> None:
    """An act on a missing object puts no such text into the audit, nor into another account's."""

    def noted(connection: Connection, subject: str) -> list[str]:
        return [one.action for one in find_audit(connection, subject)]

    def called(connection: Connection) -> str:
        own = audit_log.c
        query = select(own.subject, own.details).where(own.action == AuditAction.CALLED.value)
        return str(connection.execute(query).all())

    async def work(console: Console) -> None:
        here, there = await console.account("here"), await console.account("there")
        dev = await console.person("Dev", Role.DEVELOPER, here)
        read = console.deployment.database.read
        before = await read(noted, there)
        for named in (there, "jane@example.com", "\x00", "chk_01km9x4v8gen3rr1p6q1s2t3v4"):
            path = f"/v1/checkout_sessions/{named}/cancel"
            code = await ask(console, dev, path, {}, account=here, **TEST)
            assert code == "not_found"
        assert await read(noted, there) == before
        kept = await read(called)
        assert kept.count(here) > 4
        assert ("jane" in kept, "chk_01km9x4v8gen3rr1p6q1s2t3v4" in kept) == (False, True)

    in_console(tmp_path, work)
