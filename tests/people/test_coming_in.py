"""Links, passkeys and sessions: admitted people, and refused ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from countersign.base.errors import Forbidden, LinkOnMachine, PeopleRefused, UnknownPerson
from countersign.base.values import Mode
from countersign.core.access import authenticate
from countersign.core.access.audit import find_audit
from countersign.core.access.key import KeyKind, Principal, Scope
from countersign.core.access.reach import DEPLOYMENT, AccountReach, reach_of
from countersign.core.access.role import Role
from countersign.staff.acts import people as acts
from countersign.staff.people import roles
from tests.people.crew import Console, in_console, token_of
from tests.remembered.device import Passkey
from tests.support.acts import done

pytestmark = pytest.mark.one_engine
SESSIONS = "/v1/me/sessions"


async def is_in(console: Console, session: str | None) -> bool:
    return session is not None and await console.host.who(session) is not None


async def sessions(console: Console, session: str) -> list[tuple[str, bool]]:
    """The person's own, each with whether it is this one."""
    found = (await console.ask(session, SESSIONS)).data["data"]
    return [(one["session_id"], one["is_this"]) for one in found]


def test_a_link_names_the_person_and_the_role_before_it_is_used(tmp_path: Path) -> None:
    """And looking at it does not use it up."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        _, link = await console.link("Ada Lovelace", Role.COMPLIANCE, account)
        for _ in range(2):
            says = await console.host.link_says(link)
            assert says is not None
            assert says.name == "Ada Lovelace"
            assert [(p.account_name, p.role) for p in says.places] == [("vendor", Role.COMPLIANCE)]
        await console.come_in(link, Passkey())

    in_console(tmp_path, work)


def test_a_link_works_once(tmp_path: Path) -> None:
    """Also for two who use it at the same moment."""

    async def work(console: Console) -> tuple[int, list[object]]:
        _, link = await console.link("Ada", Role.OWNER)
        options = await console.link_options(link)
        assert options is not None
        responses = [Passkey().create(dict(options)) for _ in range(4)]
        used = await asyncio.gather(*(console.host.use_link(link, r) for r in responses))
        after: list[object] = [
            await console.host.use_link(link, responses[0]),
            await console.host.link_says(link),
            await console.link_options(link),
        ]
        return sum(one is not None for one in used), after

    assert in_console(tmp_path, work) == (1, [None, None, None])


def test_a_link_ends_in_time(tmp_path: Path) -> None:
    """An invitation after a day, a way back after a quarter of an hour."""

    async def work(console: Console) -> list[bool]:
        _, link = await console.link("Ada", Role.OWNER)
        found = []
        for seconds in (86_390, 20):
            console.clock.seconds += seconds
            found.append(await console.host.link_says(link) is not None)
        people = console.deployment.people
        back = token_of((await done(roles.way_back, people, "ada", DEPLOYMENT)).link)
        for seconds in (890, 20):
            console.clock.seconds += seconds
            found.append(await console.host.link_says(back) is not None)
        return found

    assert in_console(tmp_path, work) == [True, False, True, False]


def test_a_new_link_replaces_the_one_before(tmp_path: Path) -> None:
    """A person has one at most."""

    async def work(console: Console) -> list[bool]:
        _, first = await console.link("Ada", Role.OWNER)
        people = console.deployment.people
        back = await done(roles.way_back, people, "Ada", DEPLOYMENT)
        links = (first, token_of(back.link))
        return [await console.host.link_says(link) is not None for link in links]

    assert in_console(tmp_path, work) == [False, True]


@pytest.mark.parametrize("wrong", ["", "csign_pl_x", "nothing", "csign_ps_" + "a" * 49, "é" * 60])
def test_an_invalid_link_opens_nothing(wrong: str, tmp_path: Path) -> None:
    """Whatever is sent in its place."""

    async def work(console: Console) -> list[object]:
        _, link = await console.link("Ada", Role.OWNER)
        sent = wrong or link[:-1] + ("a" if link[-1] != "a" else "b")
        host = console.host
        return [await host.link_says(sent), await host.use_link(sent, "{}"), await host.who(sent)]

    assert in_console(tmp_path, work) == [None, None, None]


def test_a_refused_passkey_leaves_the_link(tmp_path: Path) -> None:
    """A browser that fails once may try again."""

    async def work(console: Console) -> object:
        _, link = await console.link("Ada", Role.OWNER)
        options = await console.link_options(link)
        assert options is not None
        for changes in ({"origin": "https://evil.example"}, {"flags": 1}, {"challenge": "AAAA"}):
            response = Passkey().create(dict(options), **changes)
            assert await console.host.use_link(link, response) is None
        assert await console.host.use_link(link, "{") is None
        return await console.come_in(link, Passkey())

    assert in_console(tmp_path, work)


def test_a_recovery_link_ends_earlier_sessions_and_passkeys(tmp_path: Path) -> None:
    """A lost device has no use any more: neither its session nor its passkey."""

    async def work(console: Console) -> list[bool]:
        ada = await console.person("Ada", Role.OWNER)
        people = console.deployment.people
        back = await done(roles.way_back, people, "Ada", DEPLOYMENT)
        before = await is_in(console, ada.session)
        new = Passkey()
        session = await console.come_in(token_of(back.link), new)
        return [
            before,
            await is_in(console, session),
            await is_in(console, ada.session),
            await is_in(console, await console.sign_in(ada.passkey)),
            await is_in(console, await console.sign_in(new)),
        ]

    assert in_console(tmp_path, work) == [True, True, False, False, True]


def test_each_sign_in_has_its_own_token(tmp_path: Path) -> None:
    """A token that someone planted in a browser before is worth nothing."""

    async def work(console: Console) -> None:
        ada = await console.person("Ada", Role.OWNER)
        tokens = {ada.session, *[str(await console.sign_in(ada.passkey)) for _ in range(3)]}
        assert len(tokens) == 4
        assert all([await is_in(console, token) for token in tokens])
        kept = await console.ask(ada.session, SESSIONS)
        assert [one["is_this"] for one in kept.data["data"]] == [False, False, False, True]

    in_console(tmp_path, work)


def test_a_signature_signs_in_once(tmp_path: Path) -> None:
    """Nor does a signature for another state, another page or from too long ago."""

    async def work(console: Console) -> list[bool]:
        ada = await console.person("Ada", Role.OWNER)
        console.clock.seconds += 1
        asked = [console.host.passkey_options() for _ in range(2)]
        assert asked[0] is not None
        assert asked[1] is not None
        (options, state), other = asked[0], asked[1][1]
        response = ada.passkey.sign(dict(options))
        outcomes = [
            await console.host.sign_in(sent, response) is not None
            for sent in (other, state, state, "", "1.x", "9" * 70, f"{10**20}.x")
        ]
        late = console.host.passkey_options()
        assert late is not None
        console.clock.seconds += 301
        signed = await console.host.sign_in(late[1], ada.passkey.sign(dict(late[0])))
        return [*outcomes, signed is not None]

    assert in_console(tmp_path, work) == [False, True, *[False] * 6]


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "https://evil.example"}, {"flags": 1}, {"cross_origin": True},
        {"rp_id": "evil.example"}, {"handle": b"another"}, {"type": "webauthn.create"},
    ],
)  # fmt: skip
def test_an_unrequested_response_is_refused(changes: dict[str, object], tmp_path: Path) -> None:
    """As WebAuthn has a relying party check it."""

    async def work(console: Console) -> list[bool]:
        ada = await console.person("Ada", Role.OWNER)
        refused = await console.sign_in(ada.passkey, **changes)
        return [refused is None, await console.sign_in(Passkey()) is None]

    assert in_console(tmp_path, work) == [True, True]


def test_a_copied_passkey_is_removed(tmp_path: Path) -> None:
    """Its counter does not grow."""

    async def work(console: Console) -> list[bool]:
        ada = await console.person("Ada", Role.OWNER)
        signed = [await console.sign_in(ada.passkey, step=step) for step in (5, -1, 10)]
        return [one is not None for one in signed]

    assert in_console(tmp_path, work) == [True, False, False]


def test_an_unused_session_ends(tmp_path: Path) -> None:
    """After half an hour; each use puts that off, until the day is over."""

    async def work(console: Console) -> tuple[bool, int, bool]:
        ada = await console.person("Ada", Role.OWNER)
        idle = await console.sign_in(ada.passkey)
        minutes = 0
        while await is_in(console, ada.session):
            await console.ask(ada.session, "/v1/notices")
            await asyncio.gather(*authenticate._notes)
            console.clock.seconds += 25 * 60
            minutes += 25
        return await is_in(console, idle), minutes, await is_in(console, ada.session)

    assert in_console(tmp_path, work) == (False, 725, False)


def test_a_revoked_session_ends_at_once(tmp_path: Path) -> None:
    """By signing out, or from another browser; not another person's session."""

    async def work(console: Console) -> list[bool]:
        ada = await console.person("Ada", Role.OWNER)
        eve = await console.person("Eve", Role.SUPPORT)
        other = str(await console.sign_in(ada.passkey))
        (of_other,) = [one for one, is_this in await sessions(console, ada.session) if not is_this]
        ((of_eve, _),) = await sessions(console, eve.session)
        ended = [
            (await console.ask(ada.session, f"{SESSIONS}/{one}/end", "POST", body={})).ok
            for one in (of_eve, of_other)
        ]
        await console.sign_out(ada.session)
        asked = [(await console.ask(s, "/v1/notices")).ok for s in (ada.session, other)]
        return [*ended, *asked, (await console.ask(eve.session, "/v1/notices")).ok]

    assert in_console(tmp_path, work) == [False, True, False, False, True]


def test_a_removed_person_is_signed_out_at_once(tmp_path: Path) -> None:
    """The session ends, and the passkey opens nothing."""

    async def work(console: Console) -> list[bool]:
        await console.person("Ada", Role.OWNER)
        eve = await console.person("Eve", Role.SUPPORT)
        before = (await console.ask(eve.session, "/v1/notices")).ok
        await done(roles.remove, console.deployment.people, eve.id, DEPLOYMENT)
        after = (await console.ask(eve.session, "/v1/notices")).ok
        return [before, after, await console.sign_in(eve.passkey) is not None]

    assert in_console(tmp_path, work) == [True, False, False]


def test_the_last_owner_stays(tmp_path: Path) -> None:
    """Of the staff, and of each account, also if both are removed at the same moment."""

    async def work(console: Console) -> list[int]:
        people, left = console.deployment.people, []
        for account in ("", await console.account("vendor")):
            place = reach_of(account, Mode.LIVE)
            for name in ("Ada", "Eve"):
                await console.link(name, Role.OWNER, account)
            removing = (done(roles.remove, people, name, place) for name in ("Ada", "Eve"))
            ended = await asyncio.gather(*removing, return_exceptions=True)
            assert sum(isinstance(one, PeopleRefused) for one in ended) == 1
            left.append(len(await done(roles.members, people, place)))
        return left

    assert in_console(tmp_path, work) == [1, 1]


def test_a_name_belongs_to_one_person_in_each_place(tmp_path: Path) -> None:
    """In another letter case too; elsewhere it is another person."""

    async def work(console: Console) -> None:
        first, second = await console.account("first"), await console.account("second")
        ada, _ = await console.link("Ada", Role.OWNER, first)
        other, _ = await console.link("Ada", Role.OWNER, second)
        assert ada != other
        with pytest.raises(PeopleRefused):
            await console.link("ADA", Role.SUPPORT, first)
        with pytest.raises(UnknownPerson):
            await done(
                roles.remove, console.deployment.people, "Eve", AccountReach(first, Mode.LIVE)
            )

    in_console(tmp_path, work)


def test_an_invitation_takes_over_no_person_of_another_account(tmp_path: Path) -> None:
    """An invitation by id gives a role and no link; the API makes no link for such people."""

    async def work(console: Console) -> None:
        first, second = await console.account("first"), await console.account("second")
        here, there = (AccountReach(one, Mode.LIVE) for one in (first, second))
        people = console.deployment.people
        ada = await console.person("Ada", Role.SUPPORT, first)
        invited = await done(roles.invite, people, ada.id, Role.SUPPORT, there)
        assert invited.link is None
        assert (await console.ask(ada.session, "/v1/events", account=second, mode="test")).ok
        owner = await console.person("Eve", Role.OWNER)
        for place in (here, there):
            with pytest.raises(LinkOnMachine):
                await done(roles.way_back, people, "Ada", place, owner.id)
        await done(roles.remove, people, "Ada", here)
        assert await is_in(console, ada.session)
        await done(roles.way_back, people, "Ada", there, owner.id)
        with pytest.raises(PeopleRefused):
            await done(roles.invite, people, ada.id, Role.OWNER, here)
        # Only the machine acts without a name: a key is no person.
        key = Principal(
            key_id="key_1",
            account_id=first,
            mode=Mode.LIVE,
            scopes=frozenset({Scope.PEOPLE_MANAGE}),
            credential=KeyKind.SECRET.credential,
        )
        with pytest.raises(Forbidden):
            await done(acts.invite, people, key, acts.Invitation(name="Bo", role=Role.SUPPORT))
        with pytest.raises(LinkOnMachine):
            await done(roles.way_back, people, owner.id, DEPLOYMENT, owner.id)
        with pytest.raises(Forbidden):
            await done(roles.invite, people, "Max", Role.COMPLIANCE, there, by=ada.id)

    in_console(tmp_path, work)


def test_the_audit_has_no_names(tmp_path: Path) -> None:
    """It stays when a person is gone; names are looked up by id."""

    async def work(console: Console) -> tuple[Sequence[str], str, object]:
        ada = await console.person("Ada Lovelace", Role.OWNER)
        await console.sign_in(ada.passkey)
        await console.sign_out(ada.session)
        found = await console.deployment.database.read(find_audit, ada.id)
        named = await console.host.names([ada.id])
        return (
            [entry.action.value for entry in found],
            repr(found),
            dict(named) == {ada.id: "Ada Lovelace"},
        )

    actions, text, is_named = in_console(tmp_path, work)
    assert actions == [
        "person_invited", "person_came_in", "person_signed_in", "person_signed_out",
    ]  # fmt: skip
    assert "Ada" not in text
    assert is_named
