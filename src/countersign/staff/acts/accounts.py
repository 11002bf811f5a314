"""Accounts over the API: create, find, rename, disable, close; how buyers see them; origins."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64Error
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict
from sqlalchemy import Connection

from countersign.base.errors import AccountClosed, AccountExists, InvalidRequest, UnknownAccount
from countersign.base.http import schemas
from countersign.base.http.schemas import (
    STORABLE,
    Listing,
    Page,
    Request,
    Timestamp,
    cursor,
    page_of,
    view,
)
from countersign.base.values import from_ns
from countersign.core.access.account import (
    NAME_LENGTH_MAX,
    Account,
    all_accounts,
    disable,
    enable,
    new_account,
    origins_of,
    read_account,
    refuse_closed,
    register,
    rename,
    set_settings,
    unknown_account,
    unregister,
)
from countersign.core.access.key import Scope
from countersign.core.access.keys import REVOCATION_LAG_SECONDS
from countersign.core.access.reach import DeploymentReach, Reach
from countersign.core.access.room import Access
from countersign.core.checkout.brand import FONTS, brand_of, put_brand
from countersign.core.gate.act import Acts
from countersign.core.gate.route import Route
from countersign.core.privacy.ending import close, plan_closing
from countersign.core.privacy.room import Privacy
from countersign.staff.acts.reach import command

AccountId = schemas.AccountId
_Name = Annotated[
    str,
    Meta(
        description="What staff call the account; buyers see it where no brand has a name.",
        # The act judges it, without the white space around it.
        extra_json_schema={**STORABLE, "minLength": 1, "maxLength": NAME_LENGTH_MAX},
        examples=["Ridgeline Workshop"],
    ),
]
_Origin = Annotated[
    str,
    Meta(
        description="Scheme, host and port.",
        max_length=300,
        extra_json_schema=STORABLE,
        examples=["https://shop.example"],
    ),
]
_Count = Annotated[int, Meta(examples=[2])]
_Reviewers = Annotated[int, Meta(ge=1, le=2)]
_Days = Annotated[int, Meta(ge=1, le=45)]
_Time = Annotated[datetime, Meta(tz=True)]
_Shown = Annotated[str, Meta(max_length=2048, extra_json_schema=STORABLE)]
AccountsQuery = Listing[Annotated[str, cursor("that page's last account", schemas.ACCOUNT_ID)]]


class NamedAccount(Request, frozen=True, kw_only=True):
    """A name for an account."""

    name: _Name


class AccountView(Struct, frozen=True, kw_only=True):
    """An account."""

    account_id: AccountId
    name: Annotated[str, Meta(examples=["Ridgeline Workshop"])]
    created_at: Timestamp
    status: Annotated[Literal["active", "disabled", "closed"], Meta(examples=["active"])]
    evidence_years: int | None
    """After so many years its evidence ends; null: never."""
    reviewers: Annotated[int, Meta(examples=[1])]
    """How many people decide on a buyer who waits: 1, or 2."""
    request_days: Annotated[int, Meta(examples=[45])]
    """Within how many days it answers a person's request."""
    responses_until: Timestamp | None
    """Until when whole responses of its identity providers are kept; null: for the decision."""


class AccountChange(Request, frozen=True, kw_only=True):
    """Settings of an account."""

    reviewers: Annotated[_Reviewers | UnsetType, Meta(examples=[2])] = UNSET
    """2: what a first person decides, a second one makes final."""
    request_days: Annotated[_Days | UnsetType, Meta(examples=[30])] = UNSET
    """Within how many days it has to answer a person's request."""
    responses_until: Annotated[_Time | UnsetType, Meta(examples=["2027-06-30T00:00:00Z"])] = UNSET
    """Until when to keep whole responses of identity providers, from now on: only with a reason."""
    responses_reason: Annotated[_Shown | UnsetType, Meta(examples=["case 7"])] = UNSET


class BrandView(Struct, frozen=True, kw_only=True):
    """How buyers see an account on hosted pages."""

    name: Annotated[str, Meta(examples=["Ridgeline Workshop"])]
    color: Annotated[str | None, Meta(examples=["#1f4d3a"])]
    logo: str | None
    """Hex SHA-256 of the picture."""
    contact_url: str | None
    privacy_url: str | None
    support_email: str | None
    font: str | None
    initials: Annotated[str, Meta(examples=["typed"])]
    """What buyers do: `typed` in each line, or `adopted_allowed`: typed once."""


class AccountDetails(AccountView, frozen=True, kw_only=True):
    """An account, how buyers see it, and the pages that live sessions may embed or return to."""

    brand: BrandView
    origins: Annotated[list[str], Meta(examples=[["https://shop.example"]])]


class BrandChange(Request, frozen=True, kw_only=True):
    """What to change; an empty text removes a part."""

    name: Annotated[_Shown | None, Meta(examples=["Ridgeline Workshop"])] = None
    color: Annotated[_Shown | None, Meta(examples=["#1f4d3a"])] = None
    """As #rrggbb."""
    logo: Annotated[str, Meta(max_length=12288, extra_json_schema=STORABLE)] | None = None
    """A PNG, JPEG or WebP picture of at most 6 KiB, in base64."""
    contact_url: _Shown | None = None
    privacy_url: _Shown | None = None
    support_email: _Shown | None = None
    font: Annotated[_Shown | None, Meta(description=f"One of {', '.join(FONTS)}.")] = None
    initials: _Shown | None = None
    """How they are taken: `typed` or `adopted_allowed`."""


class OriginOfAccount(Request, frozen=True, kw_only=True):
    """A page's origin."""

    origin: _Origin


class AccountOrigin(Struct, frozen=True, kw_only=True):
    """An origin of an account, as browsers write it."""

    account_id: AccountId
    origin: Annotated[str, Meta(examples=["https://shop.example"])]


class ClosedAccount(AccountView, frozen=True, kw_only=True):
    """An account that is closed, or would be, and what that ends."""

    keys: _Count
    webhook_endpoints: _Count
    origins: _Count
    checkout_sessions: _Count
    records: Annotated[int, Meta(examples=[812])]
    """What stays for evidence."""
    records_with_personal_data: Annotated[int, Meta(examples=[640])]


def account_view(account: Account) -> AccountView:
    return view(AccountView, account, account_id=account.id)


def _origins(account: Mapping[str, Any]) -> str:
    none = "No origins yet. Register one: countersign accounts origins add ACCOUNT ORIGIN"
    return "" if account["origins"] else none


ACCOUNTS: Final = Acts("Staff: accounts", Access, scope=Scope.ACCOUNTS_MANAGE, console=True)
CLOSING: Final = Acts("Staff: accounts", Privacy, scope=Scope.ACCOUNTS_MANAGE, console=True)
_RESPONSES: Final = ("responses_until", "responses_reason")


@ACCOUNTS.act(
    "POST /v1/accounts",
    "Create an account",
    reach=DeploymentReach,
    refusals=(AccountExists,),
    links={"getAccount": {"account_id": "/account_id"}},
    commands=(
        command(
            name="accounts create",
            help="Create an account, and print its id.",
            arguments=("name",),
            says="Account {name} was created.",
            shows=("account_id",),
        ),
    ),
)
def create_account(connection: Connection, access: Access, wanted: NamedAccount) -> AccountView:
    """Create an account."""
    return account_view(new_account(connection, access, wanted.name))


@ACCOUNTS.act(
    "GET /v1/accounts",
    "List the accounts, oldest first",
    commands=(
        command(
            name="accounts list",
            whole=True,
            shows=("account_id", "created_at", "status", "name"),
            none="No accounts yet. Create one: countersign accounts create NAME",
        ),
    ),
)
def list_accounts(connection: Connection, reach: Reach, query: AccountsQuery) -> Page[AccountView]:
    """The accounts, oldest first."""
    found = [one for one in all_accounts(connection) if reach.account_id in {None, one.id}]
    views = [account_view(one) for one in found if one.id > (query.after or "")]
    return page_of(views, query.limit, lambda one: one.account_id)


@ACCOUNTS.act(
    "GET /v1/accounts/{account_id}",
    "Get one account",
    refusals=(UnknownAccount,),
    commands=(
        command(
            name="accounts origins list",
            help="List the registered origins of an account.",
            says=_origins,
            shows=("origins",),
        ),
    ),
)
def get_account(connection: Connection, reach: Reach, account_id: str) -> AccountDetails:
    """One account, with its brand and its origins."""
    account = _named(connection, reach, account_id)
    brand = view(BrandView, brand_of(connection, account.id))
    origins = [*origins_of(connection, account.id)]
    return view(AccountDetails, account, account_id=account.id, brand=brand, origins=origins)


@ACCOUNTS.act(
    "POST /v1/accounts/{account_id}/rename",
    "Rename an account",
    refusals=(UnknownAccount, AccountClosed, AccountExists),
    commands=(command(name="accounts rename", arguments=("name",), shows=("name",)),),
)
def rename_account(
    connection: Connection, access: Access, reach: Reach, account_id: str, wanted: NamedAccount
) -> AccountView:
    """Give an account another name; its id, and what is recorded of it, stay.

    The name is a label for operators. Who an account is, for the evidence, is said by `accounts
    describe`.
    """
    account = _named(connection, reach, account_id)
    return account_view(rename(connection, access, account.id, wanted.name))


@ACCOUNTS.act(
    "PATCH /v1/accounts/{account_id}",
    "Change the settings of an account",
    fresh=True,
    refusals=(UnknownAccount, AccountClosed),
    commands=(
        command(name="accounts reviewers", arguments=("reviewers",), takes=()),
        command(name="accounts set", takes=("request_days", *_RESPONSES)),
    ),
)
def change_account(
    connection: Connection, access: Access, reach: Reach, account_id: str, wanted: AccountChange
) -> AccountView:
    """Change how many people decide on a buyer who waits, or when a person's request is due.

    Or keep whole responses of identity providers, beyond what decisions need, for a reason and
    until a time.
    """
    values = {name: value for name, value in asdict(wanted).items() if value is not UNSET}
    now = from_ns(access.clock.time_ns())
    given = [*filter(None, map(values.get, _RESPONSES))]
    if not values or len(given) == 1:
        raise InvalidRequest("Give a setting; `responses_until` together with its reason.")
    if values.get("responses_until", now) > now + timedelta(days=366):
        raise InvalidRequest("Whole responses are kept for a year at most; then set it again.")
    account = _named(connection, reach, account_id)
    return account_view(set_settings(connection, access, account.id, **values))


@ACCOUNTS.act(
    "POST /v1/accounts/{account_id}/disable",
    "Disable an account",
    fresh=True,
    refusals=(UnknownAccount, AccountClosed),
    commands=(
        command(
            name="accounts disable",
            asks="Disable {account_id}? None of its keys works until it is enabled again.",
            says="No key of {name} works any more; servers notice within "
            f"{REVOCATION_LAG_SECONDS} seconds.",
            shows=("account_id",),
        ),
    ),
)
def disable_account(
    connection: Connection, access: Access, reach: Reach, account_id: str
) -> AccountView:
    """Let no key of an account work until it is enabled again.

    Open checkout sessions go on to their end, webhooks are delivered, and evidence stays.
    """
    return account_view(disable(connection, access, _named(connection, reach, account_id).id))


@ACCOUNTS.act(
    "POST /v1/accounts/{account_id}/enable",
    "Enable a disabled account",
    refusals=(UnknownAccount, AccountClosed),
    commands=(
        command(name="accounts enable", says="The keys of {name} work.", shows=("account_id",)),
    ),
)
def enable_account(
    connection: Connection, access: Access, reach: Reach, account_id: str
) -> AccountView:
    """Let the keys of a disabled account work again."""
    return account_view(enable(connection, access, _named(connection, reach, account_id).id))


@ACCOUNTS.act(
    "PATCH /v1/accounts/{account_id}/brand",
    "Change how buyers see an account",
    refusals=(UnknownAccount,),
)
def change_brand(
    connection: Connection, access: Access, reach: Reach, account_id: str, wanted: BrandChange
) -> BrandView:
    """Change how buyers see an account on hosted pages. What is left out stays as it is."""
    account = _named(connection, reach, account_id)
    try:
        logo = None if wanted.logo is None else b64decode(wanted.logo, validate=True)
    except (NotBase64Error, ValueError):
        raise InvalidRequest("Expected base64 - at `$.logo`.") from None
    parts = asdict(wanted) | {"logo": logo}
    return view(BrandView, put_brand(connection, access, account.id, **parts))


@ACCOUNTS.act(
    "POST /v1/accounts/{account_id}/origins",
    "Register an origin",
    refusals=(UnknownAccount, AccountClosed),
    commands=(command(name="accounts origins add", arguments=("origin",), shows=("origin",)),),
)
def add_origin(
    connection: Connection, access: Access, reach: Reach, account_id: str, wanted: OriginOfAccount
) -> AccountOrigin:
    """Register an origin: scheme, host and port, such as https://shop.example."""
    account = _named(connection, reach, account_id)
    origin = register(connection, access, account.id, wanted.origin)
    return AccountOrigin(account_id=account.id, origin=origin)


@ACCOUNTS.act(
    "POST /v1/accounts/{account_id}/origins/remove",
    "Remove an origin",
    refusals=(UnknownAccount,),
    commands=(
        command(
            name="accounts origins remove",
            arguments=("origin",),
            asks="Remove the origin {origin}? New live checkout sessions cannot use it any more.",
            shows=("origin",),
        ),
    ),
)
def remove_origin(
    connection: Connection, access: Access, reach: Reach, account_id: str, wanted: OriginOfAccount
) -> AccountOrigin:
    """Remove an origin. Sessions that are open keep it."""
    account = _named(connection, reach, account_id)
    origin = unregister(connection, access, account.id, wanted.origin)
    return AccountOrigin(account_id=account.id, origin=origin)


@CLOSING.act(
    "GET /v1/accounts/{account_id}/close",
    "See what closing an account would end",
    refusals=(UnknownAccount, AccountClosed),
)
def preview_closing(connection: Connection, reach: Reach, account_id: str) -> ClosedAccount:
    """What closing an account would end, and what would stay."""
    account = refuse_closed(_named(connection, reach, account_id))
    return _closed_view(account, plan_closing(connection, account.id))


@CLOSING.act(
    "POST /v1/accounts/{account_id}/close",
    "Close an account for good",
    fresh=True,
    refusals=(UnknownAccount, AccountClosed),
)
def close_account(
    connection: Connection, privacy: Privacy, reach: Reach, account_id: str
) -> ClosedAccount:
    """Close an account for good: keys, endpoints, origins, credentials and open sessions end.

    Its records stay for evidence, with their proofs, their holds and their periods.
    """
    account = refuse_closed(_named(connection, reach, account_id))
    plan = plan_closing(connection, account.id)
    return _closed_view(close(connection, privacy, account.id), plan)


def _named(connection: Connection, reach: Reach, id_or_name: str) -> Account:
    """The account that the path names, if it is in reach; both modes share it."""
    account = read_account(connection, id_or_name)
    if account is None or reach.account_id not in {None, account.id}:
        raise unknown_account(id_or_name)
    return account


def _closed_view(account: Account, plan: Mapping[str, int]) -> ClosedAccount:
    return view(ClosedAccount, account, account_id=account.id, **plan)


ROUTES: Final[tuple[Route[Any], ...]] = (*ACCOUNTS.routes, *CLOSING.routes)
