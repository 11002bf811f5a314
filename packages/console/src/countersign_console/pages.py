"""All pages of an account and of the whole deployment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from countersign.server.console_host import AUDITED, STAFF_SCOPES, VENDOR_SCOPES
from countersign_console.accounts import ACCOUNTS
from countersign_console.acts import Act, Field, Page, matters
from countersign_console.audit import Audit
from countersign_console.erasures import Erasures
from countersign_console.lists import ListPage
from countersign_console.menu import Place
from countersign_console.notices import Notices
from countersign_console.orders import Orders
from countersign_console.reviews import Reviews
from countersign_console.state import State
from countersign_console.today import Today
from countersign_console.view import WORDS
from countersign_console.visit import Visit
from countersign_console.webhooks import WEBHOOKS


def _works(key: Mapping[str, Any]) -> bool:
    return bool(key["works"])


def _due(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A record with the reason in words: the period that ends."""
    held = "held" if record["hold_id"] else record["record_id"].partition("_")[0]
    return {**record, "due": f"due_{held}"}


def _ends(read: dict[str, Any], _form: Mapping[str, str]) -> dict[str, Any]:
    """The body of a key: what the API calls its fields, and its lifetime."""
    days, day, name = (read.pop(one, "") for one in ("expires", "on_day", "key_name"))
    lasts = {"lifetime_seconds": _seconds(days, day)} if days or day else {}
    return read | ({"name": name} if name else {}) | lasts


def _seconds(days: str, day: str) -> int | str:
    """In whole days, so that a form sent twice says the same; what is none, the API refuses."""
    try:
        until = datetime.fromisoformat(day).date() - datetime.now(UTC).date() if day else None
        return (int(days[:6]) if until is None else until.days) * 86_400
    except ValueError:
        return day or days


_LIFETIMES: Final = ("1", "90", "365")
"""Days; a key without one lasts until it is revoked."""
_WHY: Final = Field(name="key_reason", is_reason=True)
_KEYS: Final = ListPage(
    name="keys",
    path="/v1/keys",
    identifier="key_id",
    guide="accounts",
    columns=("name", "hint", "works", "made_by", "created_at", "last_used_at", "expires_at"),
    new=(
        Act(
            name="create_key",
            path="/v1/keys",
            scope="keys:manage",
            fresh=True,
            fields=(
                Field(name="key_name"),
                Field(
                    name="scopes",
                    kind="ticks",
                    options=(*VENDOR_SCOPES, *STAFF_SCOPES),
                    own=frozenset(STAFF_SCOPES),
                ),
                Field(name="expires", options=_LIFETIMES),
                Field(name="on_day", kind="day"),
                _WHY,
            ),
            shape=_ends,
            shows=("name", "key_id", "scopes", "expires_at", "key"),
        ),
    ),
    acts=(
        Act(
            name="rotate_key",
            path="/v1/keys/{id}/rotate",
            scope="keys:manage",
            fields=(_WHY,),
            fresh=True,
            shows=("key",),
            when=_works,
        ),
        Act(
            name="revoke_key",
            path="/v1/keys/{id}/revoke",
            scope="keys:manage",
            fresh=True,
            danger=True,
            when=_works,
        ),
    ),
)
_REQUESTS: Final = ListPage(
    name="requests",
    path="/v1/requests",
    identifier="request_id",
    columns=("at", "operation", "status", "code", "request_id", "key_id"),
    filters=(Field(name="failed", options=("true", "false")),),
    guide="integrate",
    links={"code": "/docs/errors#"},
)
_HOLDS: Final = ListPage(
    name="holds",
    path="/v1/holds",
    identifier="hold_id",
    title="reason",
    columns=("subject", "reason", "matter_id", "placed_at", "released_at"),
    filters=(Field(name="matter_id", choices=matters),),
    new=(
        Act(
            name="place_hold",
            path="/v1/holds",
            scope="holds:manage",
            fields=(
                Field(name="subject", required=True),
                Field(name="reason", required=True, length=2000),
                Field(name="matter_id", choices=matters),
            ),
        ),
    ),
    acts=(
        Act(
            name="release_hold",
            path="/v1/holds/{id}/release",
            scope="holds:manage",
            danger=True,
            fresh=True,
            when=lambda hold: not hold["released_at"],
        ),
    ),
)
_MATTERS: Final = ListPage(
    name="matters",
    path="/v1/matters",
    identifier="matter_id",
    title="name",
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
            fresh=True,
            when=lambda matter: not matter["closed_at"],
        ),
    ),
)
_RETENTION: Final = ListPage(
    name="retention",
    path="/v1/retention",
    identifier="record_id",
    columns=("record_id", "due", "retention_ends_at", "hold_id"),
    filters=(Field(name="until", kind="day"),),
    note=_due,
    machine="countersign retention run",
)


def _way(person: Mapping[str, Any]) -> Mapping[str, Any]:
    """A person with the way to sign in, in words."""
    passkey, provider = person["has_passkey"], person["has_provider"]
    link = "link" if person["link_until"] else "none"
    way = "passkey" if passkey else "provider" if provider else link
    own = {name: value for name, value in person.items() if not name.startswith("has_")}
    return own | {"signs_in": f"way_{way}"}


_ROLES: Final = ("developer", "compliance", "support", "auditor")
"""Owners are invited on the machine."""


async def _staff(visit: Visit) -> Mapping[str, str]:
    """The staff who have no role in this account, for people who may see them."""
    if visit.place.is_deployment or not visit.person.may("", "staff:manage"):
        return {}
    found = await visit.of(Place()).all_of("/v1/staff")
    here = {one["person_id"] for one in await visit.all_of("/v1/members")}
    return {one["person_id"]: one["name"] for one in found if one["person_id"] not in here}


def _invited(read: dict[str, Any], _: Mapping[str, str]) -> dict[str, Any]:
    """The body of an invitation: a person who is here already is named by the identifier."""
    person = read.pop("person_id", None)
    return read | {"name": person} if person else read


def _people(scope: str, path: str, group: str, of: str) -> ListPage:
    """The people of a place, by the operations and the group of commands for them."""

    def act(name: str, end: str, **more: Any) -> Act:  # noqa: ANN401 - as an act has them
        return Act(name=name, path=f"{path}/{{id}}/{end}", scope=scope, fresh=True, **more)

    return ListPage(
        name="people",
        path=path,
        identifier="person_id",
        title="name",
        columns=("name", "role", "signs_in", "last_used_at"),
        note=_way,
        new=(
            Act(
                name="invite",
                path=path,
                scope=scope,
                fresh=True,
                fields=(
                    Field(name="name"),
                    Field(name="person_id", choices=_staff),
                    Field(name="role", required=True, options=_ROLES),
                ),
                shape=_invited,
                shows=("name", "role", "link", "expires_at"),
                once="link",
            ),
        ),
        acts=(
            act("new_link", "link", shows=("link", "expires_at"), once="link"),
            act("sign_out_person", "sign_out"),
            act(
                "remove_person",
                "remove",
                danger=True,
                fields=(Field(name="end_keys", kind="keys"),),
            ),
        ),
        machine=f"countersign {group} invite NAME{of} --role owner",
        item_machine=f"countersign {group} link {{id}}{of}",
    )


_MEMBERS: Final = _people("people:manage", "/v1/members", "members", " --account {account}")
_STAFF: Final = _people("staff:manage", "/v1/staff", "staff", "")
_DECLARED: Final[Mapping[tuple[bool, str], tuple[str, Page]]] = {
    (False, "orders"): ("orders:read", Orders()),
    (False, "today"): ("search:read", Today()),
    (False, "reviews"): ("buyers:review", Reviews()),
    (False, "holds"): ("holds:manage", _HOLDS),
    (False, "matters"): ("holds:manage", _MATTERS),
    (False, "erasures"): ("erasure:write", Erasures()),
    (False, "retention"): ("retention:read", _RETENTION),
    (False, "keys"): ("keys:manage", _KEYS),
    (False, "webhooks"): ("webhooks:manage", WEBHOOKS),
    (False, "requests"): ("events:read", _REQUESTS),
    (False, "people"): ("people:manage", _MEMBERS),
    (False, "audit"): ("audit:read", Audit()),
    (True, "accounts"): ("accounts:manage", ACCOUNTS),
    (True, "notices"): ("notices:read", Notices()),
    (True, "state"): ("deployment:read", State()),
    (True, "people"): ("staff:manage", _STAFF),
    (True, "audit"): ("audit:read", Audit()),
}
"""(is it of the deployment?, name) → scope for reading it, page; in the menu's order."""
PAGES: Final = {key: page for key, (_, page) in _DECLARED.items()}
SCOPES: Final = {key: scope for key, (scope, _) in _DECLARED.items()}


def refuse_lacking(
    pages: Mapping[tuple[bool, str], Page], words: Mapping[str, Mapping[str, str]]
) -> None:
    """Raise LookupError where a language lacks words of pages, items, forms or audited acts."""
    needed = {f"page_{name}" for _, name in pages} | {f"audited_{one}" for one in AUDITED}
    for page in pages.values():
        acts = (*page.new, *page.acts)
        if isinstance(page, ListPage):
            needed |= {f"item_{page.name}"} if page.acts or page.item_path else set()
        needed |= {f"act_{act.name}" for act in acts}
        needed |= {f"said_{act.name}" for act in acts if not act.shows and not act.run}
    lacking = sorted(f"{locale}.{one}" for locale in words for one in needed - {*words[locale]})
    if lacking:
        raise LookupError(f"words.toml lacks {', '.join(lacking)}.")


refuse_lacking(PAGES, WORDS)
