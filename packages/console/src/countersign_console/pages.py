"""The pages: which there are, of an account and of the whole deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from countersign.console_host import PageReply
from countersign_console.erasures import Erasures
from countersign_console.lists import Act, Field, ListPage
from countersign_console.notices import Notices
from countersign_console.orders import Orders
from countersign_console.reviews import Reviews
from countersign_console.state import State
from countersign_console.today import Today
from countersign_console.visit import Visit


class Page(Protocol):
    """What answers at one address of the menu."""

    async def show(self, visit: Visit) -> PageReply:
        """The page itself."""

    async def show_item(self, visit: Visit) -> PageReply:
        """The page of what the address names."""

    async def do(self, visit: Visit, action: str) -> PageReply:
        """What a form asks for."""


_KEYS: Final = ListPage(
    name="keys",
    path="/v1/keys",
    identifier="key_id",
    columns=("hint", "works", "created_at", "last_used_at", "expires_at"),
    new=(
        Act(
            name="create_key",
            path="/v1/keys",
            scope="keys:manage",
            fields=(Field(name="lifetime_seconds", kind="number"),),
            shows=("key_id", "key"),
        ),
    ),
    acts=(
        Act(name="rotate_key", path="/v1/keys/{id}/rotate", scope="keys:manage", shows=("key",)),
        Act(name="revoke_key", path="/v1/keys/{id}/revoke", scope="keys:manage", danger=True),
    ),
)
_WEBHOOKS: Final = ListPage(
    name="webhooks",
    path="/v1/webhook_endpoints",
    identifier="endpoint_id",
    columns=("url", "description", "created_at", "disabled_at"),
    new=(
        Act(
            name="add_endpoint",
            path="/v1/webhook_endpoints",
            scope="webhooks:manage",
            fields=(Field(name="url", required=True), Field(name="description")),
            shows=("endpoint_id", "secret"),
        ),
    ),
    acts=(
        Act(
            name="rotate_secret",
            path="/v1/webhook_endpoints/{id}/rotate_secret",
            scope="webhooks:manage",
            shows=("secret",),
        ),
        Act(
            name="delete_endpoint",
            path="/v1/webhook_endpoints/{id}",
            method="DELETE",
            scope="webhooks:manage",
            danger=True,
        ),
    ),
)
_LINKS: Final = ListPage(
    name="links",
    path="/v1/checkout_sessions",
    identifier="checkout_session_id",
    item_path="/v1/checkout_sessions/{id}",
    columns=("order_reference", "status", "created_at", "ended_at", "cleared"),
    acts=(
        Act(
            name="cancel_link",
            path="/v1/checkout_sessions/{id}/cancel",
            scope="checkout_sessions:create",
            danger=True,
        ),
    ),
)
_ACCOUNTS: Final = ListPage(
    name="accounts",
    path="/v1/accounts",
    identifier="account_id",
    item_path="/v1/accounts/{id}",
    columns=("name", "status", "created_at"),
    new=(
        Act(
            name="create_account",
            path="/v1/accounts",
            scope="accounts:manage",
            fields=(Field(name="name", required=True),),
        ),
    ),
    acts=(
        Act(
            name="rename_account",
            path="/v1/accounts/{id}/rename",
            scope="accounts:manage",
            fields=(Field(name="name", required=True),),
        ),
        Act(
            name="disable_account",
            path="/v1/accounts/{id}/disable",
            scope="accounts:manage",
            danger=True,
        ),
        Act(name="enable_account", path="/v1/accounts/{id}/enable", scope="accounts:manage"),
    ),
)

_HOLDS: Final = ListPage(
    name="holds",
    path="/v1/holds",
    identifier="hold_id",
    columns=("subject", "reason", "matter_id", "placed_at", "released_at"),
    filters=(Field(name="matter_id"),),
    new=(
        Act(
            name="place_hold",
            path="/v1/holds",
            scope="holds:manage",
            fields=(
                Field(name="subject", required=True),
                Field(name="reason", required=True),
                Field(name="matter_id"),
            ),
        ),
    ),
    acts=(
        Act(
            name="release_hold",
            path="/v1/holds/{id}/release",
            scope="holds:manage",
            danger=True,
        ),
    ),
)
_MATTERS: Final = ListPage(
    name="matters",
    path="/v1/matters",
    identifier="matter_id",
    columns=("name", "holds", "opened_at", "closed_at"),
    new=(
        Act(
            name="open_matter",
            path="/v1/matters",
            scope="holds:manage",
            fields=(Field(name="name", required=True),),
        ),
    ),
    acts=(
        Act(
            name="release_matter",
            path="/v1/matters/{id}/release",
            scope="holds:manage",
            danger=True,
        ),
    ),
)
_RETENTION: Final = ListPage(
    name="retention",
    path="/v1/retention",
    identifier="record_id",
    columns=("record_id", "retention_ends_at", "hold_id"),
)
_ROLES: Final = ("owner", "developer", "compliance", "support", "auditor")


def _people(scope: str, path: str, group: str, of: str) -> ListPage:
    """The people of a place, by the operations and the group of commands for them."""

    def act(name: str, end: str, *, danger: bool = False, shows: Sequence[str] = ()) -> Act:
        to = f"{path}/{{id}}/{end}"
        return Act(name=name, path=to, scope=scope, fresh=True, danger=danger, shows=shows)

    return ListPage(
        name="people",
        path=path,
        identifier="person_id",
        columns=("name", "role", "has_passkey", "last_used_at"),
        new=(
            Act(
                name="invite",
                path=path,
                scope=scope,
                fresh=True,
                fields=(
                    Field(name="name", required=True),
                    Field(name="role", required=True, options=_ROLES),
                ),
                shows=("link",),
            ),
        ),
        acts=(
            act("new_link", "link", shows=("link",)),
            act("sign_out_person", "sign_out"),
            act("remove_person", "remove", danger=True),
        ),
        machine=f"countersign {group} invite NAME{of} --role owner",
        item_machine=f"countersign {group} link {{id}}{of}",
    )


_MEMBERS: Final = _people("people:manage", "/v1/members", "members", " --account {account}")
_STAFF: Final = _people("staff:manage", "/v1/staff", "staff", "")
_AUDIT: Final = ListPage(
    name="audit",
    path="/v1/audit",
    identifier="audit_id",
    columns=("at", "actor", "action", "subject", "details"),
    filters=(Field(name="actor"),),
)

_OF_ACCOUNT: Final = (*(_HOLDS, _MATTERS, _RETENTION, _KEYS, _WEBHOOKS, _LINKS, _MEMBERS, _AUDIT),)
_OF_DEPLOYMENT: Final = (_ACCOUNTS, _STAFF, _AUDIT)
PAGES: Final[Mapping[tuple[bool, str], Page]] = {
    **{(False, page.name): page for page in _OF_ACCOUNT},
    **{(True, page.name): page for page in _OF_DEPLOYMENT},
    (False, "today"): Today(),
    (False, "search"): Orders(),
    (False, "reviews"): Reviews(),
    (False, "erasures"): Erasures(),
    (True, "notices"): Notices(),
    (True, "state"): State(),
}
"""(whether of the deployment, name) → page."""
