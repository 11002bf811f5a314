"""People over the API: the staff, the members of an account, and a person's own sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from sqlalchemy import Connection

from countersign.base.errors import (
    KeysRemain,
    LinkOnMachine,
    PeopleRefused,
    UnknownKey,
    UnknownPerson,
    UnknownSession,
)
from countersign.base.generics import F
from countersign.base.http.schemas import (
    STORABLE,
    AccountId,
    Listing,
    Opaque,
    Page,
    Request,
    Timestamp,
    cursor,
    page_of,
    view,
)
from countersign.base.values import PERSON, is_id
from countersign.core.access.account import NAME_LENGTH_MAX
from countersign.core.access.key import ApiKey, Principal, Scope
from countersign.core.access.reach import AccountReach, DeploymentReach, Reach
from countersign.core.gate.act import Acts
from countersign.core.gate.route import Command
from countersign.staff.acts.keys import KEY_ID
from countersign.staff.acts.reach import of_deployment
from countersign.staff.people import alerts, roles, sign_in, sql
from countersign.staff.people.model import (
    PERSON_ID,
    EndedView,
    HeldAs,
    InvitedPerson,
    Member,
    PersonLink,
)
from countersign.staff.people.room import People
from countersign_evidence.cli.support import say

SESSION_ID: Final = "ps_01km9wtz3tfs8v8j2c7n5k9m0d"
_SAID_OF_LINK: Final = (
    "The link works once, until {expires_at}. It ends what the person is signed in with, and asks "
    "for a new passkey. Give it to this person alone:"
)
PeopleQuery = Listing[Annotated[str, cursor("that page's last person", PERSON_ID)]]
SessionsQuery = Listing[Annotated[str, cursor("that page's last session", SESSION_ID)]]


class Invitation(Request, frozen=True, kw_only=True):
    """Who is invited, and as what."""

    name: Annotated[
        str,
        Meta(
            extra_json_schema={**STORABLE, "minLength": 1, "maxLength": NAME_LENGTH_MAX},
            examples=["Ada Lovelace"],
        ),
    ]
    """What the person is called; from staff also the id of a person (`per_…`) who gets one more
    role and signs in as before."""
    role: HeldAs


class Removal(Request, frozen=True, kw_only=True):
    """What ends with a person's role."""

    end_keys: Annotated[list[str] | Literal["all"] | None, Meta(examples=[[KEY_ID]])] = None
    """Which of the keys in `keys` end, by their ids, or `all`; `[]`: none. Left out: it is refused
    if there are any."""


class MadeKey(Struct, frozen=True, kw_only=True):
    """A key that a person made."""

    key_id: Annotated[str, Meta(examples=[KEY_ID])]
    account_id: AccountId
    livemode: bool
    hint: Annotated[str, Meta(examples=["csign_sk_test_…x7Qd"])]
    works: bool


class PersonView(Member, frozen=True, kw_only=True):
    """A person with a role in one place."""

    keys: list[MadeKey]
    """Those that the person made there, and that work."""


class AlertsChange(Request, frozen=True, kw_only=True):
    """An address or its code; neither: alerts are turned off."""

    email: Annotated[Opaque | None, Meta(examples=["ada@example.com"])] = None
    """Gets a code, and replaces the previous address."""
    code: Annotated[Opaque | None, Meta(examples=["6Xo2kq0Lr5m3Zc8vT1b9Yw"])] = None
    """The code in the mail: turns alerts on."""


class AlertsView(Struct, frozen=True, kw_only=True):
    """The alerts by e-mail of a person."""

    is_proved: bool | None
    """Whether the address is; null: there is none, and no alerts."""


class SessionView(Struct, frozen=True, kw_only=True):
    """A browser in which the person is signed in."""

    session_id: Annotated[str, Meta(examples=[SESSION_ID])]
    created_at: Timestamp
    last_used_at: Timestamp
    ends_at: Timestamp
    """If nothing more is done in it."""
    is_this: bool
    """Whether this request was made with it."""


def _invited(made: Mapping[str, Any]) -> str:
    if made["link"] is None:
        return "{name} has the role {role} now, and signs in as before."
    return f"{{name}} ({{person_id}}) is invited as {{role}}.\n{_SAID_OF_LINK}"


async def _warn(people: People, made: Mapping[str, Any]) -> None:
    """Warn of what keeps a new link from working."""
    if made["link"] is not None and not people.is_on:
        say("warning: the console is off, so the link works only with COUNTERSIGN_CONSOLE=true")
    if made["link"] is not None and people.party is None and people.provider is None:
        say(
            f"warning: browsers make no passkeys at {people.url}: they need https and a name, or "
            "localhost"
        )


STAFF: Final = Acts(
    "Staff: people", People, scope=Scope.STAFF_MANAGE, reach=DeploymentReach, console=True
)
MEMBERS: Final = Acts(
    "Staff: people", People, scope=Scope.PEOPLE_MANAGE, reach=AccountReach, console=True
)
OWN: Final = Acts("Staff: people", People, scope=Scope.SESSIONS_MANAGE, console=True)


_PLACES: Final[tuple[tuple[Acts[People], str, str, str, dict[str, Any]], ...]] = (
    (
        *(STAFF, "staff", "StaffPerson", "the staff"),
        {
            "owner": of_deployment,
            "none": "No one yet. Invite the first: countersign staff invite NAME --role owner",
        },
    ),
    (
        *(MEMBERS, "members", "Member", "an account"),
        {
            "live": True,
            "none": "No one yet. Invite the first: countersign members invite NAME "
            "--account ACCOUNT --role owner",
        },
    ),
)


def _act(
    address: str,
    summary: str,
    operation: str,
    *commands: dict[str, Any],
    **declared: Any,  # noqa: ANN401 - of Route
) -> Callable[[F], F]:
    """Declare an act on the staff, and the same on the members of an account."""

    def declare(function: F) -> F:
        for acts, group, one, many, whose in _PLACES:
            named = [one | {"name": f"{group} {one['name']}"} for one in commands]
            acts.act(
                address.format(group),
                summary.format(many),
                operation=operation.format(one),
                commands=tuple(Command(**whose, **one) for one in named),
                **declared,
            )(function)
        return function

    return declare


@_act(
    "POST /v1/{}",
    "Invite a person to {}",
    "invite{}",
    {
        "name": "invite",
        "help": "Invite a person, and print the link by which the person comes in, once.\n\n"
        "NAME can be the id of a person (per_…), who gets this role too and signs in as before.",
        "arguments": ("name",),
        "says": _invited,
        "shows": ("link",),
        "warns": _warn,
    },
    fresh=True,
    secret=True,
    refusals=(PeopleRefused, LinkOnMachine, UnknownPerson),
)
def invite(
    connection: Connection, people: People, who: Principal, wanted: Invitation
) -> InvitedPerson:
    """Give a person a role. The link is in this response only, and works once, for 24 hours.

    Only owners appoint. The link of an owner is made on the machine.
    """
    made = roles.invite(connection, people, wanted.name, wanted.role, who.reach, by=_by(who))
    return view(InvitedPerson, made)


@_act(
    "GET /v1/{}",
    "List the people of {}, oldest first",
    "list{}s",
    {
        "name": "list",
        "help": "List the people with their roles.",
        "whole": True,
        "shows": ("person_id", "role", "last_used_at", "name"),
    },
)
def list_people(
    connection: Connection, people: People, reach: Reach, query: PeopleQuery
) -> Page[PersonView]:
    """The people with a role there, and since when."""
    found = [_view(*one) for one in roles.members(connection, people, reach)]
    rows = sorted((one for one in found if one.person_id > (query.after or "")), key=_id_of)
    return page_of(rows, query.limit, _id_of)


@_act(
    "POST /v1/{}/{{person_id}}/remove",
    "Remove a person from {}",
    "remove{}",
    fresh=True,
    request_examples={"who made no keys": {}, "and every key": {"end_keys": "all"}},
    refusals=(UnknownPerson, PeopleRefused, KeysRemain, UnknownKey),
)
def remove(
    connection: Connection, people: People, who: Principal, person_id: str, wanted: Removal
) -> PersonView:
    """Take a person's role; one without any role left is signed out at once.

    The last owner stays. If the person made keys there that work, `end_keys` says which of them
    end; the response shows in `keys` which do.
    """
    named, ends = _named(who, person_id), wanted.end_keys
    return _view(*roles.remove(connection, people, named, who.reach, _by(who), end_keys=ends))


@_act(
    "POST /v1/{}/{{person_id}}/link",
    "Make a way back in for a person of {}",
    "link{}",
    {
        "name": "link",
        "help": "Print a link by which a person comes in again, with a new passkey.",
        "says": _SAID_OF_LINK,
        "shows": ("link",),
        "warns": _warn,
    },
    fresh=True,
    secret=True,
    refusals=(UnknownPerson, LinkOnMachine),
)
def link(connection: Connection, people: People, who: Principal, person_id: str) -> PersonLink:
    """Make a link by which a person who has lost the passkey comes in again, for 15 minutes.

    Its use ends the sessions and passkeys of before. That of an owner, or of somebody who has a
    role elsewhere too, is made on the machine.
    """
    made = roles.way_back(connection, people, _named(who, person_id), who.reach, _by(who))
    return view(PersonLink, made)


@_act(
    "POST /v1/{}/{{person_id}}/sign_out",
    "End all sessions of a person of {}",
    "signOut{}",
    fresh=True,
    refusals=(UnknownPerson,),
)
def sign_out(connection: Connection, people: People, who: Principal, person_id: str) -> EndedView:
    """End all sessions of a person, who can sign in again."""
    named = _named(who, person_id)
    return sign_in.sign_out_member(connection, people, named, who.reach, _by(who))


def _by(who: Principal) -> str:
    """The person who acts; "": the machine does. A key is no person."""
    return "" if who.is_operator else who.actor


def _named(who: Principal, person_id: str) -> str:
    """The person of the path; over the API by the id alone: no name is in an address."""
    if not (who.is_operator or is_id(PERSON, person_id)):
        raise UnknownPerson
    return person_id


def _id_of(one: PersonView) -> str:
    return one.person_id


@OWN.act("GET /v1/me/sessions", "List your sessions, newest first")
def list_own_sessions(
    connection: Connection, people: People, who: Principal, query: SessionsQuery
) -> Page[SessionView]:
    """The person's own sessions, the newest first."""
    rows = [
        view(SessionView, one, session_id=one.id, is_this=one.id == who.key_id)
        for one in sign_in.open_sessions(connection, people, who.person_id)
        if query.after is None or one.id < query.after
    ]
    return page_of(rows, query.limit, lambda one: one.session_id)


@OWN.act(
    "POST /v1/me/sessions/{session_id}/end",
    "End one of your sessions",
    refusals=(UnknownSession,),
)
def end_own_session(
    connection: Connection, people: People, who: Principal, session_id: str
) -> EndedView:
    """End one of the person's own sessions."""
    return sign_in.end_session(connection, people, who.person_id, session_id)


@OWN.act("POST /v1/me/sessions/end", "End all of your sessions")
def end_own_sessions(connection: Connection, people: People, who: Principal) -> EndedView:
    """End all of the person's own sessions, also this one."""
    return sign_in.end_sessions(connection, people, who.person_id)


@OWN.act("GET /v1/me/alerts", "Get the state of your alerts")
def get_alerts(connection: Connection, who: Principal) -> AlertsView:
    """Whether the person gets alerts by e-mail about overdue promises of the deployment."""
    return AlertsView(is_proved=alerts.is_proved(connection, who.person_id))


@OWN.act(
    "POST /v1/me/alerts",
    "Turn alerts on, confirm their address, or turn them off",
    request_examples={"an address": {"email": "ada@example.com"}, "neither": {}},
    refusals=(PeopleRefused,),
)
async def change_alerts(people: People, who: Principal, wanted: AlertsChange) -> AlertsView:
    """Turn on alerts by e-mail for a person of the staff, or turn them off.

    An address gets a code, and alerts once its code was entered. Alerts are about buyers who wait
    for a decision, webhooks that are switched off, backups and checks of the log.
    """
    database = people.access.database
    if wanted.code is not None:
        await database.write(alerts.prove, people, who.person_id, wanted.code)
    elif wanted.email is not None:
        await alerts.ask(people, who.person_id, wanted.email)
    else:
        await database.write(sql.end_alerts, who.person_id)
    return AlertsView(is_proved=await database.scan(alerts.is_proved, who.person_id))


def _view(one: Member, made: Sequence[ApiKey]) -> PersonView:
    keys = [view(MadeKey, k, key_id=k.id, works=k.revoked_at is None) for k in made]
    return view(PersonView, one, keys=keys)


ROUTES: Final = (*STAFF.routes, *MEMBERS.routes, *OWN.routes)
