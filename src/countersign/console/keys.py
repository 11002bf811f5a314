"""API keys over the API: those of one account and mode."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.access.account import find_account
from countersign.access.key import (
    MACHINE,
    MACHINE_SCOPES,
    READING_SCOPES,
    STAFF_SCOPES,
    VENDOR_SCOPES,
    ApiKey,
    Scope,
)
from countersign.access.keys import (
    NewKey,
    create_key,
    keys_of,
    revoke_key,
    rotate_key,
    unknown_key,
)
from countersign.access.reach import AccountReach
from countersign.access.room import Access
from countersign.console.accounts import AccountId
from countersign.console.reach import staff_route
from countersign.errors import AccountClosed, Forbidden, KeyNotUsable, UnknownKey
from countersign.http.act import NoWords
from countersign.http.body import parse_body
from countersign.http.headers import reason
from countersign.http.paging import Listing, Page, cursor, page_of
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import grouped
from countersign.http.schemas import Request, Timestamp, view
from countersign.instant import from_ns

KEY_ID: Final = "key_01km9wtz3tfs8v8j2c7n5k9m0d"
_YEAR_SECONDS: Final = 366 * 86_400
_DAY_SECONDS: Final = 86_400
KeysQuery = Listing[Annotated[str, cursor("that page's last key", KEY_ID)]]


class KeyRequest(Request, frozen=True, kw_only=True):
    """What a new key may do, and for how long."""

    scopes: Annotated[
        Annotated[list[Scope], Meta(min_length=1)] | None,
        Meta(description="Left out: all that a vendor's server needs."),
    ] = None
    lifetime_seconds: Annotated[
        Annotated[int, Meta(ge=60, le=10 * _YEAR_SECONDS)] | None,
        Meta(description="Left out: it works until it is revoked.", examples=[_YEAR_SECONDS]),
    ] = None


class KeyRotation(Request, frozen=True, kw_only=True):
    """How long the old key goes on to work."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=_YEAR_SECONDS, examples=[_DAY_SECONDS])] = (
        _DAY_SECONDS
    )


class KeyView(Struct, frozen=True, kw_only=True):
    """A key of an account; the key itself is shown only when it is made."""

    key_id: Annotated[str, Meta(examples=[KEY_ID])]
    account_id: AccountId
    livemode: bool
    hint: Annotated[
        str, Meta(description="Its beginning and its end.", examples=["csign_sk_test_…x7Qd"])
    ]
    scopes: Annotated[list[str], Meta(examples=[["acks:create", "notices:read"]])]
    works: bool
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked_at: Timestamp | None
    last_used_at: Annotated[Timestamp | None, Meta(description="To the hour.")]
    replaces: Annotated[str | None, Meta(description="The key of which it is the successor.")]
    made_by: Annotated[
        str,
        Meta(
            description="The person (`per_…`) who made it, or the key with which it was made; "
            "`machine`: it was made on the machine.",
            examples=["per_01km9wtz3tfs8v8j2c7n5k9m0d"],
        ),
    ]
    key: Annotated[
        str | UnsetType,
        Meta(description="The key itself: present only in the response that makes it."),
    ] = UNSET


async def create(room: Access, call: Call) -> Reply:
    """Create a key. It is in this response only, and works immediately.

    A person whose role does not see personal data, and whose key reads it (`acks:read`,
    `clearances:read`, `evidence:read`), says why in `Countersign-Reason`. How often a key that a
    person made reads personal data is in the audit, for each day.
    """
    body, who = parse_body(call.body, KeyRequest), call.principal
    owner = await find_account(room, who.account_id)
    scopes = None if body.scopes is None else frozenset(body.scopes)
    why = _reason(call, VENDOR_SCOPES if scopes is None else scopes)
    seconds = body.lifetime_seconds
    lifetime = None if seconds is None else timedelta(seconds=seconds)

    made = partial(
        create_key, room, owner, who.mode, scopes, lifetime, made_by=who.maker, by_key=who.by_key
    )
    return await call.kept(_made, lambda entry: made(reason=why, entry=entry))


async def list_keys(room: Access, call: Call) -> Reply:
    """The keys of an account and mode, oldest first."""
    query: KeysQuery = call.query
    now = from_ns(room.clock.time_ns())
    found = await room.database.scan(keys_of, call.principal.reach)
    rows = [_view(key, now) for key in found if key.id > (query.after or "")]
    return Reply(encode(page_of(rows, query.limit, lambda one: one.key_id)))


async def rotate(room: Access, call: Call) -> Reply:
    """Create a successor with the same scopes and maker. The old key works until the overlap ends.

    `Countersign-Reason` is needed as for a new key. A key of the machine becomes that of the person
    who rotates it, and who is shown the successor.
    """
    body, key = parse_body(call.body, KeyRotation), await _named(room, call)
    why = _reason(call, key.scopes)
    overlap = timedelta(seconds=body.overlap_seconds)
    made = partial(
        rotate_key,
        room,
        key.id,
        overlap,
        by=call.principal.maker,
        by_key=call.principal.by_key,
        reason=why,
    )
    return await call.kept(_made, lambda entry: made(entry=entry))


async def revoke(room: Access, call: Call) -> Reply:
    """Revoke a key for good. Running servers refuse it within seconds."""
    parse_body(call.body, NoWords)
    key, now = await _named(room, call), from_ns(room.clock.time_ns())

    return await call.kept(lambda revoked: _view(revoked, now), partial(revoke_key, room, key.id))


async def _named(access: Access, call: Call) -> ApiKey:
    own = await access.database.scan(keys_of, call.principal.reach)
    key = next((key for key in own if key.id == call.parameter), None)
    if key is None:
        raise unknown_key(call.parameter)
    return key


def _reason(call: Call, scopes: frozenset[Scope]) -> str | None:
    """Why the caller gives a key these scopes, where that has to be said.

    Of what staff do, no one gives a key more than they may do themselves: a key also acts. The same
    goes for reading personal data with a key that a person made; a person who sees none gives the
    reason. Over the API no one gives a key what is of people alone, also not by a rotation.

    Raises:
        Forbidden: the caller cannot give a key one of them.
        InvalidRequest: the reason is missing.
    """
    who = call.principal
    for scope in sorted(scopes & MACHINE_SCOPES):
        raise Forbidden(
            f"Over the API no one gives a key the scope {scope}: people do it themselves. On the "
            "machine, `countersign keys` makes and rotates such keys.",
            scope=scope,
        )
    looks = who.person.looks if who.person else ()
    mine = who.scopes - {scope for scope in looks if not scope.endswith(":read")}
    own = STAFF_SCOPES | READING_SCOPES if who.made_by else STAFF_SCOPES
    for scope in sorted(scopes & own - mine):
        raise Forbidden(f"You cannot give a key the scope {scope}: you lack it.", scope=scope)
    sees = who.person is None or who.person.sees_personal_data
    return None if sees or not scopes & READING_SCOPES else reason(call)


def _made(new: NewKey) -> KeyView:
    return _view(new.key, new.key.created_at, new.token)


def _view(key: ApiKey, now: datetime, token: str | UnsetType = UNSET) -> KeyView:
    scopes, works = sorted(key.scopes), key.works_at(now)
    maker = key.made_by or MACHINE
    return view(KeyView, key, key_id=key.id, scopes=scopes, works=works, key=token, made_by=maker)


_route: Final = partial(staff_route, scope=Scope.KEYS_MANAGE, reach=AccountReach)

ROUTES: Final = grouped(
    "Staff: keys",
    Access,
    _route(
        address="POST /v1/keys",
        handler=create,
        operation="createKey",
        summary="Create an API key",
        # It is left in the browser when the session has ended.
        fresh=True,
        request=KeyRequest,
        request_examples={"a vendor's server": {}, "one scope": {"scopes": ["clearances:read"]}},
        secret=True,
        response=KeyView,
        response_examples={"created": {"key": "csign_sk_test_…"}},
        refusals=(AccountClosed,),
    ),
    _route(
        address="GET /v1/keys",
        handler=list_keys,
        operation="listKeys",
        summary="List the API keys, oldest first",
        query=KeysQuery,
        response=Page[KeyView],
    ),
    _route(
        address="POST /v1/keys/{key_id}/rotate",
        handler=rotate,
        operation="rotateKey",
        summary="Give an API key a successor",
        # Without an overlap it ends the other.
        fresh=True,
        request=KeyRotation,
        secret=True,
        response=KeyView,
        response_examples={"created": {"key": "csign_sk_test_…"}},
        refusals=(UnknownKey, KeyNotUsable, AccountClosed),
    ),
    _route(
        address="POST /v1/keys/{key_id}/revoke",
        handler=revoke,
        operation="revokeKey",
        summary="Revoke an API key for good",
        fresh=True,
        request=NoWords,
        request_examples={"nothing to say": {}},
        response=KeyView,
        refusals=(UnknownKey,),
    ),
)
