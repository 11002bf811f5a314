"""The pages of people and sessions, as a browser without JavaScript uses them."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from countersign.core.access.role import Role
from countersign.core.gate.route import Reply
from tests.console.visitor import KEPT
from tests.people.crew import Console, Person, in_console, token_of
from tests.remembered.device import ORIGIN, Passkey

pytestmark = pytest.mark.one_engine


async def show(console: Console, who: Person, path: str, **form: str) -> Reply:
    """The page at this path of the console; with a form, the page after it."""
    host = console.host
    cookie = {"Cookie": f"{host.cookie_name('session')}={who.session}", "Host": "localhost:4711"}
    if not form:
        return await console.http("GET", f"/console/{path}", cookie)
    sent = urlencode({"code": host.form_code(who.session), **form}).encode()
    own = {"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
    reply = await console.http("POST", f"/console/{path}", cookie | own, sent)
    while KEPT.search(to := dict(reply.headers).get(b"location", b"").decode()):
        reply = await console.http("GET", to, cookie)
    return reply


def text(reply: Reply) -> str:
    return reply.body.decode()


def lead_of(reply: Reply) -> str:
    assert reply.status == 303
    return dict(reply.headers)[b"location"].decode()


def test_an_owner_invites_a_person_who_comes_in_and_removes_the_person(tmp_path: Path) -> None:
    """The link is shown once; acts that only the machine can do are shown as commands."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        boss = await console.person("Bo", Role.OWNER, account)
        people = f"{account}/live/people"
        listed = text(await show(console, boss, people))
        assert f"countersign members invite NAME --account {account} --role owner" in listed
        made = await show(console, boss, f"{people}/-/invite", name="Sam <Poe>", role="support")
        link = re.search(r"http://localhost:4711/console/link#\w+", text(made))
        assert link is not None
        session = await console.come_in(token_of(link[0]), Passkey())
        listed = text(await show(console, boss, people))
        assert "Sam &lt;Poe&gt;" in listed
        assert "csign_pl_" not in listed
        (sam,) = set(re.findall(r"per_\w+", listed)) - {boss.id}
        shown = text(await show(console, boss, f"{people}/{sam}"))
        assert f"countersign members link {sam} --account {account}" in shown
        ended = await show(console, boss, f"{people}/{sam}/sign_out_person", sure="1")
        assert "All sessions ended: Sam &lt;Poe&gt;." in text(ended)
        assert await console.host.who(session) is None
        unsure = await show(console, boss, f"{people}/{sam}/remove_person", sure="")
        assert unsure.status == 422
        removed = await show(console, boss, f"{people}/{sam}/remove_person", sure="1")
        assert "Removed: Sam &lt;Poe&gt;." in text(removed)
        last = await show(console, boss, f"{people}/{boss.id}/remove_person", sure="1")
        assert (last.status, "last owner" in text(last)) == (409, True)

    in_console(tmp_path, work)


def test_the_ticked_keys_of_a_removed_person_end(tmp_path: Path) -> None:
    """They are in the form, each with a box; a key made meanwhile is asked about again."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        boss = await console.person("Bo", Role.OWNER, account)
        dev = await console.person("Dev", Role.DEVELOPER, account)

        async def made() -> str:
            about = {"account": account, "mode": "test", "body": {"scopes": ["notices:read"]}}
            return str((await console.ask(dev.session, "/v1/keys", "POST", **about)).data["key_id"])

        page = f"{account}/live/people/{dev.id}"
        assert "end_keys" not in text(await show(console, boss, page))
        first, second = await made(), await made()
        unseen = await show(console, boss, f"{page}/remove_person", sure="1")
        assert (unseen.status, first in text(unseen)) == (409, True)
        shown = text(await show(console, boss, f"{page}/remove_person"))
        assert f'name="end_keys.{first}"' in shown
        ticked = {"end_keys": "1", f"end_keys.{first}": "1", "sure": "1"}
        removed = await show(console, boss, f"{page}/remove_person", **ticked)
        assert "Removed: Dev." in text(removed)
        listed = await console.ask(boss.session, "/v1/keys", account=account, mode="test")
        works = {one["key_id"]: one["works"] for one in listed.data["data"]}
        assert works == {first: False, second: True}

    in_console(tmp_path, work)


def test_an_owner_is_invited_by_the_line_that_the_page_shows(tmp_path: Path) -> None:
    async def work(console: Console) -> tuple[int, bool]:
        boss = await console.person("Bo", Role.OWNER)
        made = await show(console, boss, "all/people/-/invite", name="Ann Lee", role="owner")
        line = "countersign staff invite &#39;Ann Lee&#39; --role owner"
        return made.status, line in text(made)

    assert in_console(tmp_path, work) == (409, True)


def test_the_passkey_is_asked_for_before_the_form_is_filled(tmp_path: Path) -> None:
    """Typed text is not lost; a person who may only read gets no form."""

    async def work(console: Console) -> None:
        boss = await console.person("Bo", Role.OWNER)
        eve = await console.person("Eve", Role.AUDITOR)
        assert "people/-/invite" in text(await show(console, boss, "all/people"))
        assert "people/-/invite" not in text(await show(console, eve, "all/people"))
        console.clock.seconds += 301
        stale = lead_of(await show(console, boss, "all/people/-/invite"))
        assert stale.endswith("passkey?back=all%2Fpeople%2F-%2Finvite")
        refused = await show(console, boss, "all/people/-/invite", name="Sam", role="support")
        assert "passkey?back=all%2Fpeople" in lead_of(refused)

    in_console(tmp_path, work)


def test_a_person_sees_and_ends_the_own_sessions(tmp_path: Path) -> None:
    """One, and then all; the last one leads to the sign-in page."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        sam = await console.person("Sam", Role.SUPPORT, account)
        other = str(await console.sign_in(sam.passkey))
        listed = text(await show(console, sam, "sessions"))
        newest, oldest = re.findall(r'name="session" value="(\w+)"', listed)
        assert lead_of(await show(console, sam, "sessions", session=newest)).endswith("ended")
        assert await console.host.who(other) is None
        gone = await show(console, sam, "sessions", session=newest)
        assert lead_of(gone).endswith("session_unknown")
        again = str(await console.sign_in(sam.passkey))
        assert oldest in text(await show(console, sam, "sessions"))
        assert "/sign-in" in lead_of(await show(console, sam, "sessions", session=""))
        assert await console.host.who(sam.session) is None
        assert await console.host.who(again) is None

    in_console(tmp_path, work)


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.SUPPORT])
def test_staff_of_each_role_begin_where_they_may_work(role: Role, tmp_path: Path) -> None:
    """In the first account, with its pages in the menu; without an account, at the state."""

    async def work(console: Console) -> None:
        dev = await console.person("Dev", role)
        assert lead_of(await show(console, dev, "")) == "/console/all/state"
        assert (await show(console, dev, "all/state")).status == 200
        account = await console.account("vendor")
        assert lead_of(await show(console, dev, "")) == f"/console/{account}/test/orders"
        home = text(await show(console, dev, f"{account}/live/orders"))
        assert f"{account}/live/webhooks" in home
        assert "create_account" not in text(await show(console, dev, "all/accounts"))
        assert (await show(console, dev, f"{account}/live/people")).status == 403

    in_console(tmp_path, work)
