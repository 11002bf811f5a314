"""Accounts over the API: create, find, rename, disable, close; how buyers see them; origins."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64Error
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from countersign.access.account import (
    NAME_LENGTH_MAX,
    Account,
    all_accounts,
    create_account,
    disable_account,
    enable_account,
    find_account,
    rename_account,
    set_reviewers,
    unknown_account,
)
from countersign.access.key import Scope
from countersign.access.keys import REVOCATION_LAG_SECONDS
from countersign.access.origins import add_origin, origins_of, remove_origin
from countersign.access.reach import DeploymentReach
from countersign.access.room import Access
from countersign.checkout.brand import FONTS, Brand, brand_of, change_brand
from countersign.console.reach import of_deployment, staff_route
from countersign.errors import AccountClosed, AccountExists, InvalidRequest, UnknownAccount
from countersign.http.act import NoWords
from countersign.http.body import parse_body
from countersign.http.paging import Listing, Page, cursor, page_of
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Command, grouped
from countersign.http.schemas import STORABLE, Request, Timestamp, view
from countersign.privacy.closing import Closing, close_account, plan_closing
from countersign.privacy.room import Privacy

ACCOUNT_ID: Final = "acct_01km9wtz3tfs8v8j2c7n5k9m0c"
AccountId = Annotated[str, Meta(description="The account.", examples=[ACCOUNT_ID])]
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
_Shown = Annotated[str, Meta(max_length=2048, extra_json_schema=STORABLE)]
AccountsQuery = Listing[Annotated[str, cursor("that page's last account", ACCOUNT_ID)]]


class NamedAccount(Request, frozen=True, kw_only=True):
    """A name for an account."""

    name: _Name


class AccountView(Struct, frozen=True, kw_only=True):
    """An account."""

    account_id: AccountId
    name: Annotated[str, Meta(examples=["Ridgeline Workshop"])]
    created_at: Timestamp
    status: Annotated[Literal["active", "disabled", "closed"], Meta(examples=["active"])]
    evidence_years: Annotated[
        int | None, Meta(description="After so many years its evidence ends; null: never.")
    ]
    reviewers: Annotated[
        int,
        Meta(description="How many people decide on a buyer who waits: 1, or 2.", examples=[1]),
    ]


class AccountChange(Request, frozen=True, kw_only=True):
    """Settings of an account."""

    reviewers: Annotated[
        Annotated[int, Meta(ge=1, le=2)],
        Meta(description="2: what a first person decides, a second one makes final.", examples=[2]),
    ]


class BrandView(Struct, frozen=True, kw_only=True):
    """How buyers see an account on hosted pages."""

    name: Annotated[str, Meta(examples=["Ridgeline Workshop"])]
    color: Annotated[str | None, Meta(examples=["#1f4d3a"])]
    logo: Annotated[str | None, Meta(description="Hex SHA-256 of the picture.")]
    contact_url: str | None
    privacy_url: str | None
    support_email: str | None
    font: str | None
    initials: Annotated[
        str,
        Meta(
            description="What buyers do: `typed` in each line, or `adopted_allowed`: typed once.",
            examples=["typed"],
        ),
    ]


class AccountDetails(AccountView, frozen=True, kw_only=True):
    """An account, how buyers see it, and the pages that live sessions may embed or return to."""

    brand: BrandView
    origins: Annotated[list[str], Meta(examples=[["https://shop.example"]])]


class BrandChange(Request, frozen=True, kw_only=True):
    """What to change; an empty text removes a part."""

    name: Annotated[_Shown | None, Meta(examples=["Ridgeline Workshop"])] = None
    color: Annotated[_Shown | None, Meta(description="As #rrggbb.", examples=["#1f4d3a"])] = None
    logo: Annotated[
        Annotated[str, Meta(max_length=12288, extra_json_schema=STORABLE)] | None,
        Meta(description="A PNG, JPEG or WebP picture of at most 6 KiB, in base64."),
    ] = None
    contact_url: _Shown | None = None
    privacy_url: _Shown | None = None
    support_email: _Shown | None = None
    font: Annotated[_Shown | None, Meta(description=f"One of {', '.join(FONTS)}.")] = None
    initials: Annotated[
        _Shown | None, Meta(description="How they are taken: `typed` or `adopted_allowed`.")
    ] = None


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
    records: Annotated[int, Meta(description="What stays for evidence.", examples=[812])]
    records_with_personal_data: Annotated[int, Meta(examples=[640])]


def account_view(account: Account) -> AccountView:
    return view(AccountView, account, account_id=account.id)


async def create(room: Access, call: Call) -> Reply:
    """Create an account."""
    body = parse_body(call.body, NamedAccount)
    return await call.kept(account_view, partial(create_account, room, body.name))


async def list_accounts(room: Access, call: Call) -> Reply:
    """The accounts, oldest first."""
    query: AccountsQuery = call.query
    found = await room.database.scan(all_accounts)
    rows = [account_view(a) for a in found if a.id > (query.after or "") and _in_reach(call, a)]
    return Reply(encode(page_of(rows, query.limit, lambda one: one.account_id)))


async def get_account(room: Access, call: Call) -> Reply:
    """One account, with its brand and its origins."""
    account = await _named(room, call)
    brand = await room.database.read(brand_of, account.id)
    origins = [*await room.database.read(origins_of, account.id)]
    brand_view = _brand_view(brand)
    about = view(AccountDetails, account, account_id=account.id, brand=brand_view, origins=origins)
    return Reply(encode(about))


async def rename(room: Access, call: Call) -> Reply:
    """Give an account another name; its id, and what is recorded of it, stay.

    The name is a label for operators. Who an account is, for the evidence, is said by `accounts
    describe`.
    """
    body, account = parse_body(call.body, NamedAccount), await _named(room, call)
    return await call.kept(account_view, partial(rename_account, room, account.id, body.name))


async def change(room: Access, call: Call) -> Reply:
    """Say whether one person decides on a buyer who waits, or two."""
    body, account = parse_body(call.body, AccountChange), await _named(room, call)
    return await call.kept(account_view, partial(set_reviewers, room, account.id, body.reviewers))


async def disable(room: Access, call: Call) -> Reply:
    """Let no key of an account work until it is enabled again.

    Open checkout sessions go on to their end, webhooks are delivered, and evidence stays.
    """
    parse_body(call.body, NoWords)
    account = await _named(room, call)
    return await call.kept(account_view, partial(disable_account, room, account.id))


async def enable(room: Access, call: Call) -> Reply:
    """Let the keys of a disabled account work again."""
    parse_body(call.body, NoWords)
    account = await _named(room, call)
    return await call.kept(account_view, partial(enable_account, room, account.id))


async def set_brand(room: Access, call: Call) -> Reply:
    """Change how buyers see an account on hosted pages. What is left out stays as it is."""
    body, account = parse_body(call.body, BrandChange), await _named(room, call)
    try:
        logo = body.logo if not body.logo else b64decode(body.logo, validate=True)
    except (NotBase64Error, ValueError):
        raise InvalidRequest("Expected base64 - at `$.logo`.") from None

    parts = asdict(body) | {"logo": logo}
    return await call.kept(_brand_view, partial(change_brand, room, account.id, **parts))


async def register_origin(room: Access, call: Call) -> Reply:
    """Register an origin: scheme, host and port, such as https://shop.example."""
    return await _change_origin(room, call, add_origin)


async def drop_origin(room: Access, call: Call) -> Reply:
    """Remove an origin. Sessions that are open keep it."""
    return await _change_origin(room, call, remove_origin)


async def preview_closing(room: Privacy, call: Call) -> Reply:
    """What closing an account would end, and what would stay."""
    account = await _named(room.access, call)
    _, plan = await plan_closing(room, account.id)
    return Reply(encode(_closed_view(account, plan)))


async def close(room: Privacy, call: Call) -> Reply:
    """Close an account for good: keys, endpoints, origins, credentials and open sessions end.

    Its records stay for evidence, with their proofs, their holds and their periods.
    """
    parse_body(call.body, NoWords)
    account = await _named(room.access, call)
    _, plan = await plan_closing(room, account.id)

    return await call.kept(
        lambda closed: _closed_view(closed, plan), partial(close_account, room, account.id)
    )


async def _change_origin(room: Access, call: Call, change: Callable[..., Awaitable[str]]) -> Reply:
    body, account = parse_body(call.body, OriginOfAccount), await _named(room, call)

    return await call.kept(
        lambda origin: AccountOrigin(account_id=account.id, origin=origin),
        partial(change, room, account.id, body.origin),
    )


async def _named(access: Access, call: Call) -> Account:
    """The account that the path names, if the caller may see it."""
    account = await find_account(access, call.parameter)
    if not _in_reach(call, account):
        raise unknown_account(call.parameter)
    return account


def _in_reach(call: Call, account: Account) -> bool:
    """Whether the caller may see an account, which is the same in both modes."""
    return call.principal.reach.covers(account.id, call.principal.mode)


def _brand_view(brand: Brand) -> BrandView:
    return view(BrandView, brand)


def _closed_view(account: Account, plan: Closing) -> ClosedAccount:
    return view(ClosedAccount, account, plan, account_id=account.id)


_route: Final = partial(staff_route, scope=Scope.ACCOUNTS_MANAGE)
_command: Final = partial(Command, owner=of_deployment)

ROUTES: Final = (
    *grouped(
        "Staff: accounts",
        Access,
        _route(
            address="POST /v1/accounts",
            handler=create,
            operation="createAccount",
            summary="Create an account",
            reach=DeploymentReach,
            request=NamedAccount,
            response=AccountView,
            refusals=(AccountExists,),
            links={"getAccount": {"account_id": "/account_id"}},
            commands=(
                _command(
                    name="accounts create",
                    help="Create an account, and print its id.",
                    arguments=("name",),
                    says="Account {name} was created.",
                    shows=("account_id",),
                ),
            ),
        ),
        _route(
            address="GET /v1/accounts",
            handler=list_accounts,
            operation="listAccounts",
            summary="List the accounts, oldest first",
            query=AccountsQuery,
            response=Page[AccountView],
        ),
        _route(
            address="GET /v1/accounts/{account_id}",
            handler=get_account,
            operation="getAccount",
            summary="Get one account",
            response=AccountDetails,
            refusals=(UnknownAccount,),
        ),
        _route(
            address="POST /v1/accounts/{account_id}/rename",
            handler=rename,
            operation="renameAccount",
            summary="Rename an account",
            request=NamedAccount,
            response=AccountView,
            refusals=(UnknownAccount, AccountClosed, AccountExists),
            commands=(_command(name="accounts rename", arguments=("name",), shows=("name",)),),
        ),
        _route(
            address="PATCH /v1/accounts/{account_id}",
            handler=change,
            operation="changeAccount",
            summary="Change the settings of an account",
            fresh=True,
            request=AccountChange,
            response=AccountView,
            refusals=(UnknownAccount, AccountClosed),
            commands=(
                _command(name="accounts reviewers", arguments=("reviewers",), shows=("reviewers",)),
            ),
        ),
        _route(
            address="POST /v1/accounts/{account_id}/disable",
            handler=disable,
            operation="disableAccount",
            summary="Disable an account",
            fresh=True,
            request=NoWords,
            request_examples={"nothing to say": {}},
            response=AccountView,
            refusals=(UnknownAccount, AccountClosed),
            commands=(
                _command(
                    name="accounts disable",
                    asks="Disable {account_id}? None of its keys works until it is enabled again.",
                    says="No key of {name} works any more; servers notice within "
                    f"{REVOCATION_LAG_SECONDS} seconds.",
                    shows=("account_id",),
                ),
            ),
        ),
        _route(
            address="POST /v1/accounts/{account_id}/enable",
            handler=enable,
            operation="enableAccount",
            summary="Enable a disabled account",
            request=NoWords,
            request_examples={"nothing to say": {}},
            response=AccountView,
            refusals=(UnknownAccount, AccountClosed),
            commands=(
                _command(
                    name="accounts enable", says="The keys of {name} work.", shows=("account_id",)
                ),
            ),
        ),
        _route(
            address="PATCH /v1/accounts/{account_id}/brand",
            handler=set_brand,
            operation="changeBrand",
            summary="Change how buyers see an account",
            request=BrandChange,
            response=BrandView,
            refusals=(UnknownAccount,),
        ),
        _route(
            address="POST /v1/accounts/{account_id}/origins",
            handler=register_origin,
            operation="addOrigin",
            summary="Register an origin",
            request=OriginOfAccount,
            response=AccountOrigin,
            refusals=(UnknownAccount, AccountClosed),
            commands=(
                _command(name="accounts origins add", arguments=("origin",), shows=("origin",)),
            ),
        ),
        _route(
            address="POST /v1/accounts/{account_id}/origins/remove",
            handler=drop_origin,
            operation="removeOrigin",
            summary="Remove an origin",
            request=OriginOfAccount,
            response=AccountOrigin,
            refusals=(UnknownAccount,),
            commands=(
                _command(
                    name="accounts origins remove",
                    arguments=("origin",),
                    asks="Remove the origin {origin}? New live checkout sessions cannot use it any "
                    "more.",
                    shows=("origin",),
                ),
            ),
        ),
    ),
    *grouped(
        "Staff: accounts",
        Privacy,
        _route(
            address="GET /v1/accounts/{account_id}/close",
            handler=preview_closing,
            operation="previewClosing",
            summary="See what closing an account would end",
            response=ClosedAccount,
            refusals=(UnknownAccount, AccountClosed),
        ),
        _route(
            address="POST /v1/accounts/{account_id}/close",
            handler=close,
            operation="closeAccount",
            summary="Close an account for good",
            fresh=True,
            request=NoWords,
            request_examples={"nothing to say": {}},
            response=ClosedAccount,
            refusals=(UnknownAccount, AccountClosed),
        ),
    ),
)
