"""API keys over the API: those of one account and mode."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import Connection

from countersign.base.cli import say_if_local
from countersign.base.errors import AccountClosed, Forbidden, KeyNotUsable, UnknownKey
from countersign.base.http.schemas import (
    STORABLE,
    AccountId,
    Listing,
    Page,
    Request,
    Timestamp,
    cursor,
    page_of,
    view,
)
from countersign.base.values import Mode, from_ns
from countersign.core.access import keys
from countersign.core.access.account import find_account
from countersign.core.access.key import (
    MACHINE,
    MACHINE_SCOPES,
    READING_SCOPES,
    STAFF_SCOPES,
    VENDOR_SCOPES,
    ApiKey,
    Scope,
)
from countersign.core.access.reach import AccountReach, Reach
from countersign.core.access.room import Access
from countersign.core.gate.act import Acts
from countersign.core.gate.route import Call, Command, reason
from countersign.core.log.logs_sql import newest_logs
from countersign.staff.acts.reach import command
from countersign_evidence.cli.support import say

KEY_ID: Final = "key_01km9wtz3tfs8v8j2c7n5k9m0d"
_YEAR_SECONDS: Final = 366 * 86_400
_DAY_SECONDS: Final = 86_400
KeysQuery = Listing[Annotated[str, cursor("that page's last key", KEY_ID)]]


_Name = Annotated[
    str,
    Meta(min_length=1, max_length=100, extra_json_schema=STORABLE, examples=["shop's server"]),
]


class KeyRequest(Request, frozen=True, kw_only=True):
    """What a new key may do, and for how long."""

    scopes: Annotated[list[Scope], Meta(min_length=1)] | None = None
    """Left out: all that a vendor's server needs. Only a signed-in person with a fresh passkey
    gives `clearances:override`."""
    lifetime_seconds: Annotated[
        Annotated[int, Meta(ge=60, le=10 * _YEAR_SECONDS)] | None,
        Meta(examples=[_YEAR_SECONDS]),
    ] = None
    """Left out: it works until it is revoked."""
    name: _Name | None = None
    """What it is for, such as the server that has it; nothing personal."""


class KeyRotation(Request, frozen=True, kw_only=True):
    """How long the old key goes on to work."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=_YEAR_SECONDS, examples=[_DAY_SECONDS])] = (
        _DAY_SECONDS
    )


class KeyView(Struct, frozen=True, kw_only=True):
    """A key of an account; the key itself is shown only when it is made."""

    key_id: Annotated[str, Meta(examples=[KEY_ID])]
    name: _Name | None
    account_id: AccountId
    livemode: bool
    hint: Annotated[str, Meta(examples=["csign_sk_test_…x7Qd"])]
    """Its beginning and its end."""
    scopes: Annotated[list[Scope], Meta(examples=[["acks:create", "notices:read"]])]
    works: bool
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked_at: Timestamp | None
    last_used_at: Timestamp | None
    """To the hour."""
    replaces: str | None
    """The key of which it is the successor."""
    made_by: Annotated[str, Meta(examples=["per_01km9wtz3tfs8v8j2c7n5k9m0d"])]
    """The person (`per_…`) who made it, or the key with which it was made; `machine`: it was made
    on the machine."""
    key: str | UnsetType = UNSET
    """The key itself: present only in the response that makes it."""


async def _warn(access: Access, made: Mapping[str, Any]) -> None:
    """Warn of what keeps a new key from working, or a first live key's evidence from counting."""
    owner = await find_account(access, made["account_id"])
    log = (await access.database.read(newest_logs)).get(Mode.LIVE)
    if made["livemode"] and made["replaces"] is None and log is not None:
        say_if_local(log.origin)
        for scope in await access.database.read(keys.undescribed, owner.id):
            what, how = (
                ("operates this service", "operator describe")
                if scope == "deployment"
                else (f"account {owner.name} is", f"accounts describe {scope}")
            )
            say(
                f"warning: no record says who {what}. Acknowledgments bind only what is recorded "
                f"before them: countersign {how} --legal-name NAME"
            )
    if owner.disabled_at is not None:
        say(
            f"warning: the account {owner.name} is disabled, so the key works only after "
            f"`countersign accounts enable {owner.id}`"
        )


KEYS: Final = Acts("Staff: keys", Access, scope=Scope.KEYS_MANAGE, reach=AccountReach, console=True)


@KEYS.act(
    "POST /v1/keys",
    "Create an API key",
    # It is left in the browser when the session has ended.
    fresh=True,
    secret=True,
    request_examples={"a vendor's server": {}, "one scope": {"scopes": ["clearances:read"]}},
    response_examples={"created": {"key": "csign_sk_test_…"}},
    refusals=(AccountClosed,),
    commands=(
        Command(
            name="keys create",
            help="Create a key, and print it. It is shown only once, and works immediately.",
            names={"lifetime_seconds": "expires-in"},
            says="Key {key_id}, shown this once:",
            shows=("key",),
            warns=_warn,
        ),
    ),
)
def create_key(connection: Connection, access: Access, call: Call, wanted: KeyRequest) -> KeyView:
    """Create a key. It is in this response only, and works immediately.

    A person whose role does not see personal data, and whose key reads it (`acks:read`,
    `clearances:read`, `evidence:read`), says why in `Countersign-Reason`. How often a key that a
    person made reads personal data is in the audit, for each day.
    """
    who, scopes = call.principal, None if wanted.scopes is None else frozenset(wanted.scopes)
    seconds = wanted.lifetime_seconds
    made = keys.create_key(
        *(connection, access, who.account_id, who.mode, scopes),
        name=wanted.name,
        lifetime=None if seconds is None else timedelta(seconds=seconds),
        made_by=who.maker,
        by_key=who.by_key,
        reason=_reason(call, scopes or VENDOR_SCOPES),
    )
    return _view(made.key, made.key.created_at, made.token)


@KEYS.act(
    "GET /v1/keys",
    "List the API keys, oldest first",
    commands=(
        Command(
            name="keys list",
            help="List the keys of an account, or of all accounts, oldest first.",
            either_mode=True,
            anywhere=True,
            whole=True,
            shows=(
                *("key_id", "hint", "account_id", "works", "expires_at", "revoked_at"),
                *("last_used_at", "made_by", "name"),
            ),
            none="No keys yet. Create one: countersign keys create --account ACCOUNT --mode test",
        ),
    ),
)
def list_keys(
    connection: Connection, access: Access, reach: Reach, query: KeysQuery
) -> Page[KeyView]:
    """The keys of an account and mode, oldest first."""
    now = from_ns(access.clock.time_ns())
    rows = [_view(k, now) for k in keys.keys_of(connection, reach) if k.id > (query.after or "")]
    return page_of(rows, query.limit, lambda one: one.key_id)


@KEYS.act(
    "POST /v1/keys/{key_id}/rotate",
    "Give an API key a successor",
    # Without an overlap it revokes the old key.
    fresh=True,
    secret=True,
    response_examples={"created": {"key": "csign_sk_test_…"}},
    refusals=(UnknownKey, KeyNotUsable, AccountClosed),
    commands=(
        command(
            name="keys rotate",
            help="Create a successor with the same scopes, and print it.\n\n"
            "The old key works until the overlap ends.",
            sends={"overlap_seconds": "24h"},
            says="The old key {replaces} stops working when the overlap ends.\n"
            "Key {key_id}, shown this once:",
            shows=("key",),
            warns=_warn,
        ),
    ),
)
def rotate_key(
    connection: Connection, access: Access, call: Call, key_id: str, wanted: KeyRotation
) -> KeyView:
    """Create a successor with the same scopes and maker. The old key works until the overlap ends.

    `Countersign-Reason` is needed as for a new key. A key of the machine becomes that of the person
    who rotates it, and who is shown the successor.
    """
    who = call.principal
    key = _named(connection, who.reach, key_id)
    made = keys.rotate_key(
        *(connection, access, key.id, timedelta(seconds=wanted.overlap_seconds)),
        by=who.maker,
        by_key=who.by_key,
        reason=_reason(call, key.scopes),
    )
    return _view(made.key, made.key.created_at, made.token)


@KEYS.act(
    "POST /v1/keys/{key_id}/revoke",
    "Revoke an API key for good",
    fresh=True,
    refusals=(UnknownKey,),
    commands=(
        command(
            name="keys revoke",
            asks="Revoke the key {key_id}? This cannot be undone.",
            says="The key is revoked. Running servers refuse it within "
            f"{keys.REVOCATION_LAG_SECONDS} seconds.",
            shows=("key_id",),
        ),
    ),
)
def revoke_key(connection: Connection, access: Access, reach: Reach, key_id: str) -> KeyView:
    """Revoke a key for good. Running servers refuse it within seconds."""
    revoked = keys.revoke_key(connection, access, _named(connection, reach, key_id).id)
    return _view(revoked, from_ns(access.clock.time_ns()))


def _named(connection: Connection, reach: Reach, key_id: str) -> ApiKey:
    found = (key for key in keys.keys_of(connection, reach) if key.id == key_id)
    if (key := next(found, None)) is None:
        raise keys.unknown_key(key_id)
    return key


def _reason(call: Call, scopes: frozenset[Scope]) -> str | None:
    """The reason for granting these scopes, if one is required.

    No one grants a key a staff scope beyond their own, because a key also acts. The same goes for
    reading personal data with a key that a person made; a person who may not see such data gives
    the reason. Over the API no one grants a scope reserved for people, by rotation either. An
    operator may grant any scope but `clearances:override`, which only a signed-in person grants.

    Raises:
        Forbidden: the caller may not grant one of them.
        InvalidRequest: the reason is missing.
    """
    who = call.principal
    if Scope.CLEARANCES_OVERRIDE in scopes and who.person is None:
        raise Forbidden(
            f"Only a person makes or rotates a key with the scope {Scope.CLEARANCES_OVERRIDE}: "
            "signed in, with a passkey.",
            scope=Scope.CLEARANCES_OVERRIDE,
        )
    if who.is_operator:
        return None
    for scope in sorted(scopes & MACHINE_SCOPES):
        raise Forbidden(
            f"Over the API no one gives a key the scope {scope}: people do it themselves. On the "
            f"machine, `countersign keys` makes and rotates such keys.",
            scope=scope,
        )
    looks = who.person.looks if who.person else ()
    mine = who.scopes - {scope for scope in looks if not scope.endswith(":read")}
    own = STAFF_SCOPES | READING_SCOPES if who.made_by else STAFF_SCOPES
    for scope in sorted(scopes & own - mine):
        raise Forbidden(f"You cannot give a key the scope {scope}: you lack it.", scope=scope)
    sees = who.person is None or who.person.sees_personal_data
    return None if sees or not scopes & READING_SCOPES else reason(call)


def _view(key: ApiKey, now: datetime, token: str | UnsetType = UNSET) -> KeyView:
    scopes, works = sorted(key.scopes), key.works_at(now)
    maker = key.made_by or MACHINE
    return view(KeyView, key, key_id=key.id, scopes=scopes, works=works, key=token, made_by=maker)


ROUTES: Final = KEYS.routes
