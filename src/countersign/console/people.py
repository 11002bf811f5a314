"""People over the API: the staff, the members of an account, and a person's own sessions."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from sqlalchemy import Connection

from countersign.access.account import NAME_LENGTH_MAX
from countersign.access.key import Principal, Scope
from countersign.access.reach import AccountReach, DeploymentReach
from countersign.access.role import Role
from countersign.console.accounts import AccountId
from countersign.console.keys import KEY_ID
from countersign.console.reach import staff_route
from countersign.errors import (
    KeysRemain,
    LinkOnMachine,
    PeopleRefused,
    UnknownKey,
    UnknownPerson,
    UnknownSession,
)
from countersign.http.act import Acts, NoWords
from countersign.http.body import parse_body
from countersign.http.paging import Listing, Page, cursor, page_of
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Route, grouped
from countersign.http.schemas import STORABLE, Request, Timestamp, view
from countersign.ids import PERSON, is_id
from countersign.people import roles, sessions
from countersign.people.model import Invited, Member
from countersign.people.room import People
from countersign.people.sessions import EndedSessions

PERSON_ID: Final = "per_01km9wtz3tfs8v8j2c7n5k9m0d"
SESSION_ID: Final = "ps_01km9wtz3tfs8v8j2c7n5k9m0d"
_LINK: Final = "https://evidence.example.com/console/link#csign_pl_…"
_PersonId = Annotated[str, Meta(examples=[PERSON_ID])]
_SessionId = Annotated[str, Meta(examples=[SESSION_ID])]
_Name = Annotated[str, Meta(examples=["Ada Lovelace"])]
_Role = Annotated[Role, Meta(examples=[Role.COMPLIANCE])]
PeopleQuery = Listing[Annotated[str, cursor("that page's last person", PERSON_ID)]]
SessionsQuery = Listing[Annotated[str, cursor("that page's last session", SESSION_ID)]]


class Invitation(Request, frozen=True, kw_only=True):
    """Who is invited, and as what."""

    name: Annotated[
        str,
        Meta(
            description="What the person is called; from staff also the id of a person (`per_…`) "
            "who gets one more role and signs in as before.",
            # The act judges it, without the white space around it.
            extra_json_schema={**STORABLE, "minLength": 1, "maxLength": NAME_LENGTH_MAX},
            examples=["Ada Lovelace"],
        ),
    ]
    role: _Role


class Removal(Request, frozen=True, kw_only=True):
    """What ends with a person's role."""

    end_keys: Annotated[
        list[str] | Literal["all"] | None,
        Meta(
            description="Which of the keys in `keys` end, by their ids, or `all`; `[]`: none. Left "
            "out: it is refused if there are any.",
            examples=[[KEY_ID]],
        ),
    ] = None


class MadeKey(Struct, frozen=True, kw_only=True):
    """A key that a person made."""

    key_id: Annotated[str, Meta(examples=[KEY_ID])]
    account_id: AccountId
    livemode: bool
    hint: Annotated[str, Meta(examples=["csign_sk_test_…x7Qd"])]
    works: bool


class PersonView(Struct, frozen=True, kw_only=True):
    """A person with a role in one place."""

    person_id: _PersonId
    name: _Name
    role: _Role
    granted_at: Timestamp
    granted_by: Annotated[
        str,
        Meta(description="The person (`per_…`), or the user of the system.", examples=["root"]),
    ]
    has_passkey: Annotated[
        bool, Meta(description="false: the person has not come in yet, or has `has_provider`.")
    ]
    has_provider: Annotated[
        bool, Meta(description="true: the person signs in at the provider of OpenID Connect.")
    ]
    link_until: Annotated[
        Timestamp | None, Meta(description="Until when an unused link of the person works.")
    ]
    last_used_at: Annotated[
        Timestamp | None, Meta(description="When the person signed in last, or used the passkey.")
    ]
    keys: Annotated[
        list[MadeKey], Meta(description="Those that the person made there, and that work.")
    ]


class PersonLink(Struct, frozen=True, kw_only=True):
    """A link by which a person comes in: present only in the response that makes it."""

    person_id: _PersonId
    link: Annotated[
        str | None,
        Meta(
            description="It works once. Give it to this person alone. null: the person signs in "
            "as before.",
            examples=[_LINK],
        ),
    ]
    expires_at: Timestamp | None


class InvitedPerson(PersonLink, frozen=True, kw_only=True):
    """Who was invited, and the link by which the person comes in."""

    name: _Name
    role: _Role


class EndedView(Struct, frozen=True, kw_only=True):
    """Sessions that were ended."""

    person_id: _PersonId
    sessions: Annotated[int, Meta(description="How many.", examples=[2])]


class SessionView(Struct, frozen=True, kw_only=True):
    """A browser in which the person is signed in."""

    session_id: _SessionId
    created_at: Timestamp
    last_used_at: Timestamp
    ends_at: Annotated[Timestamp, Meta(description="If nothing more is done in it.")]
    is_this: Annotated[bool, Meta(description="Whether this request was made with it.")]


def _named(call: Call) -> str:
    """The person of the path, by the id alone: no name is in an address."""
    if not is_id(PERSON, call.parameter):
        raise UnknownPerson
    return call.parameter


async def invite(room: People, call: Call) -> Reply:
    """Give a person a role. The link is in this response only, and works once, for 24 hours.

    Only owners appoint. The link of an owner is made on the machine.
    """
    body, who = parse_body(call.body, Invitation), call.principal

    def said(invited: Invited) -> InvitedPerson:
        link = invited.link
        url, until = (None, None) if link is None else (link.url, link.expires_at)
        return view(InvitedPerson, invited, role=body.role, link=url, expires_at=until)

    return await call.kept(
        said,
        lambda entry: roles.invite(
            room, body.name, body.role, who.reach, by=who.person_id, entry=entry
        ),
    )


async def list_people(room: People, call: Call) -> Reply:
    """The people with a role there, and since when."""
    query: PeopleQuery = call.query
    found = await roles.members(room, call.principal.reach)
    rows = sorted((_view(one) for one in found), key=lambda one: one.person_id)
    rows = [one for one in rows if one.person_id > (query.after or "")]
    return Reply(encode(page_of(rows, query.limit, lambda one: one.person_id)))


async def remove(room: People, call: Call) -> Reply:
    """Take a person's role; one without any role left is signed out at once.

    The last owner stays. If the person made keys there that work, `end_keys` says which of them
    end; the response shows in `keys` which do.
    """
    ends, who = parse_body(call.body, Removal).end_keys, call.principal
    act = partial(roles.remove, room, _named(call), who.reach, who.person_id, end_keys=ends)
    return await call.kept(_view, lambda entry: act(entry=entry))


async def link(room: People, call: Call) -> Reply:
    """Make a link by which a person who has lost the passkey comes in again, for 15 minutes.

    Its use ends the sessions and passkeys of before. That of an owner, or of somebody who has a
    role elsewhere too, is made on the machine.
    """
    parse_body(call.body, NoWords)
    who, person_id = call.principal, _named(call)

    return await call.kept(
        lambda made: view(PersonLink, made, person_id=person_id, link=made.url),
        partial(roles.way_back, room, person_id, who.reach, who.person_id),
    )


async def sign_out(room: People, call: Call) -> Reply:
    """End all sessions of a person, who can sign in again."""
    parse_body(call.body, NoWords)
    who = call.principal
    act = partial(sessions.sign_out_member, room, _named(call), who.reach, who.person_id)
    return await call.kept(_ended, act)


OWN: Final = Acts("Staff: people", People, scope=Scope.SESSIONS_MANAGE, console=True)


@OWN.act("GET /v1/me/sessions", "List your sessions, newest first")
def list_own_sessions(
    connection: Connection, people: People, who: Principal, query: SessionsQuery
) -> Page[SessionView]:
    """The person's own sessions, the newest first."""
    rows = [
        view(SessionView, one, session_id=one.id, is_this=one.id == who.key_id)
        for one in sessions.open_sessions(connection, people, who.person_id)
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
    return _ended(sessions.end_session(connection, people, who.person_id, session_id))


@OWN.act("POST /v1/me/sessions/end", "End all of your sessions")
def end_own_sessions(connection: Connection, people: People, who: Principal) -> EndedView:
    """End all of the person's own sessions, also this one."""
    return _ended(sessions.end_sessions(connection, people, who.person_id))


def _ended(ended: EndedSessions) -> EndedView:
    return EndedView(person_id=ended.person_id, sessions=ended.number)


def _view(one: Member) -> PersonView:
    keys = [view(MadeKey, k, key_id=k.id, works=k.revoked_at is None) for k in one.keys]
    return view(PersonView, one, person_id=one.id, keys=keys)


def _of(path: str, one: str, many: str, route: Any) -> tuple[Route[People], ...]:  # noqa: ANN401 - of a scope
    """The operations on the people of one place: the staff, or the members of an account."""
    act = partial(route, request=NoWords, request_examples={"nothing to say": {}}, fresh=True)
    named = f"{path}/{{person_id}}"
    return (
        route(
            address=f"POST {path}",
            handler=invite,
            operation=f"invite{one}",
            summary=f"Invite a person to {many}",
            fresh=True,
            request=Invitation,
            secret=True,
            response=InvitedPerson,
            refusals=(PeopleRefused, LinkOnMachine, UnknownPerson),
        ),
        route(
            address=f"GET {path}",
            handler=list_people,
            operation=f"list{one}s",
            summary=f"List the people of {many}, oldest first",
            query=PeopleQuery,
            response=Page[PersonView],
        ),
        act(
            address=f"POST {named}/remove",
            handler=remove,
            operation=f"remove{one}",
            summary=f"Remove a person from {many}",
            request=Removal,
            request_examples={"who made no keys": {}, "and every key": {"end_keys": "all"}},
            response=PersonView,
            refusals=(UnknownPerson, PeopleRefused, KeysRemain, UnknownKey),
        ),
        act(
            address=f"POST {named}/link",
            handler=link,
            operation=f"link{one}",
            summary=f"Make a way back in for a person of {many}",
            secret=True,
            response=PersonLink,
            refusals=(UnknownPerson, LinkOnMachine),
        ),
        act(
            address=f"POST {named}/sign_out",
            handler=sign_out,
            operation=f"signOut{one}",
            summary=f"End all sessions of a person of {many}",
            response=EndedView,
            refusals=(UnknownPerson,),
        ),
    )


_staff: Final = partial(staff_route, scope=Scope.STAFF_MANAGE, reach=DeploymentReach)
_members: Final = partial(staff_route, scope=Scope.PEOPLE_MANAGE, reach=AccountReach)

ROUTES: Final[tuple[Route[Any], ...]] = (
    *grouped(
        "Staff: people",
        People,
        *_of("/v1/staff", "StaffPerson", "the staff", _staff),
        *_of("/v1/members", "Member", "an account", _members),
    ),
    *OWN.routes,
)
