"""Accounts, one for each vendor: their names, their rows, and the operator's acts on them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from msgspec import to_builtins
from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from countersign.base.db.engine import is_violation
from countersign.base.db.statements import lock_on_server, row, rows
from countersign.base.db.tables import account_origins, accounts
from countersign.base.errors import AccountClosed, AccountExists, InvalidArgument, UnknownAccount
from countersign.base.host import NUMBER, PORT_MAX
from countersign.base.values import ACCOUNT, from_ns, rfc3339, timed_id
from countersign.core.access.audit import AuditAction, AuditEntry, write_audit
from countersign.core.access.room import Access

NAME_LENGTH_MAX: Final = 100
_SELECT: Final = select(accounts).where(
    or_(accounts.c.id == bindparam("wanted"), accounts.c.name == bindparam("wanted"))
)
_PRINTABLE: Final = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]", re.UNICODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One vendor of this deployment."""

    id: str
    name: str
    created_at: datetime
    disabled_at: datetime | None = None
    closed_at: datetime | None = None
    evidence_years: int | None = None
    """After how many years the evidence of its orders ends; None: never."""
    reviewers: int = 1
    """How many people decide on a buyer who waits: 1, or 2."""
    request_days: int = 45
    """Within how many days it answers a person's request."""
    responses_until: datetime | None = None
    """Until when whole responses of identity providers are kept, and why."""
    responses_reason: str | None = None

    @property
    def status(self) -> str:
        """`active`, `disabled` or `closed`."""
        if self.closed_at is not None:
            return "closed"
        return "active" if self.disabled_at is None else "disabled"


def checked_account_name(name: str) -> str:
    """The name without white space around it.

    Raises InvalidArgument if it is empty, too long, unprintable, or looks like an account id.
    """
    stripped = name.strip()
    if not 0 < len(stripped) <= NAME_LENGTH_MAX:
        raise InvalidArgument(f"An account name must have 1 to {NAME_LENGTH_MAX} characters.")
    if not all(c == " " or _PRINTABLE.match(c) for c in stripped):
        raise InvalidArgument("An account name must not contain control characters or line breaks.")
    if unicodedata.normalize("NFKC", stripped) != stripped or any(
        unicodedata.category(character) == "Cf" for character in stripped
    ):
        raise InvalidArgument(
            "An account name must not contain invisible or look-alike (compatibility) characters."
        )
    if stripped.startswith(ACCOUNT + "_"):
        raise InvalidArgument(
            f"An account name must not start with {ACCOUNT}_: account ids start like that."
        )
    return stripped


def add_account(connection: Connection, account: Account, audit: AuditEntry | None = None) -> None:
    """Write a new account.

    Raises AccountExists if the name is taken.
    """
    try:
        with connection.begin_nested():
            connection.execute(insert(accounts), asdict(account))
            write_audit(connection, audit)
    except IntegrityError as error:
        if is_violation(error, "accounts.name") or is_violation(error, "uq_accounts_name"):
            raise _exists(account.name) from None
        raise


def read_account(connection: Connection, id_or_name: str) -> Account | None:
    return row(connection, _SELECT, Account, {"wanted": id_or_name})


def all_accounts(connection: Connection) -> Sequence[Account]:
    """All accounts, oldest first."""
    return rows(connection, select(accounts).order_by(accounts.c.id), Account)


async def create_account(access: Access, name: str) -> Account:
    """A new account, as `new_account`."""
    return await access.database.write(new_account, access, name)


def new_account(connection: Connection, access: Access, name: str) -> Account:
    """A new account. Raises InvalidArgument, or AccountExists if the name is taken."""
    wanted = checked_account_name(name)
    _refuse_taken(connection, wanted)
    time_ns = access.clock.time_ns()
    account = Account(
        id=timed_id(ACCOUNT, time_ns, access.entropy(8)), name=wanted, created_at=from_ns(time_ns)
    )
    add_account(connection, account, access.audit.entry(AuditAction.ACCOUNT_CREATED, account.id))
    return account


def rename(connection: Connection, access: Access, account_id: str, name: str) -> Account:
    """Give an account another name; its id, and what is recorded of it, stay.

    Raises UnknownAccount, AccountClosed, or AccountExists if the name is taken.
    """
    wanted, account = checked_account_name(name), lock_account(connection, account_id)
    if account.name == wanted:
        return account
    _refuse_taken(connection, wanted, but=account.id)
    details = {"name": wanted, "before": account.name}
    renamed = AuditAction.ACCOUNT_RENAMED
    return change_account(connection, access, account, renamed, details, name=wanted)


def disable(connection: Connection, access: Access, account_id: str) -> Account:
    """Let no key of the account work, within REVOCATION_LAG_SECONDS on running servers.

    Checkout sessions that are open, webhooks and evidence go on. Raises UnknownAccount or
    AccountClosed.
    """
    account, now = lock_account(connection, account_id), from_ns(access.clock.time_ns())
    if account.disabled_at is not None:
        return account
    disabled = AuditAction.ACCOUNT_DISABLED
    return change_account(connection, access, account, disabled, disabled_at=now)


def enable(connection: Connection, access: Access, account_id: str) -> Account:
    """Let the keys of a disabled account work again; revoked keys stay revoked.

    Raises UnknownAccount or AccountClosed.
    """
    account = lock_account(connection, account_id)
    if account.disabled_at is None:
        return account
    enabled = AuditAction.ACCOUNT_ENABLED
    return change_account(connection, access, account, enabled, disabled_at=None)


def set_settings(
    connection: Connection, access: Access, account_id: str, /, **values: object
) -> Account:
    """Set these settings of an account, by the names of the columns.

    Raises UnknownAccount or AccountClosed.
    """
    account = lock_account(connection, account_id)
    put = AuditAction.REVIEWERS_SET if "reviewers" in values else AuditAction.ACCOUNT_SET
    return change_account(connection, access, account, put, to_builtins(values), **values)


def lock_grants(connection: Connection) -> None:
    """Let no other transaction change roles until this one ends: the last owner stays the last."""
    lock_on_server(connection, "LOCK TABLE person_grants IN SHARE ROW EXCLUSIVE MODE")


def lock_account(connection: Connection, id_or_name: str) -> Account:
    """An account that is not closed; no other transaction changes it until this one ends.

    Raises UnknownAccount or AccountClosed.
    """
    account = row(connection, _SELECT.with_for_update(), Account, {"wanted": id_or_name})
    if account is None:
        raise unknown_account(id_or_name)
    return refuse_closed(account)


def refuse_closed(account: Account) -> Account:
    """The account, if it is open. Raises AccountClosed if it is not."""
    if account.closed_at is not None:
        raise AccountClosed(
            f"The account {account.name} was closed at {rfc3339(account.closed_at)}, and a closed "
            "account stays closed. Make a new one."
        )
    return account


def change_account(
    connection: Connection,
    access: Access,
    account: Account,
    action: AuditAction,
    details: Mapping[str, object] | None = None,
    /,
    **values: object,
) -> Account:
    """Change columns of a locked account; `details` are for the audit."""
    connection.execute(update(accounts).where(accounts.c.id == account.id).values(**values))
    write_audit(connection, access.audit.entry(action, account.id, **(details or {})))
    return replace(account, **values)  # type: ignore[arg-type] # of the columns' types


async def find_account(access: Access, id_or_name: str) -> Account:
    """The account with this id or name.

    Raises UnknownAccount if there is none.
    """
    account = await access.database.read(read_account, id_or_name)
    if account is None:
        raise unknown_account(id_or_name)
    return account


def _refuse_taken(connection: Connection, name: str, but: str = "") -> None:
    """Names that differ only in case count as the same."""
    # Another command that writes a name waits here until this one is committed.
    lock_on_server(connection, "LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE")
    for known in all_accounts(connection):
        if known.id != but and known.name.casefold() == name.casefold():
            raise _exists(known.name, is_closed=known.closed_at is not None)


def unknown_account(id_or_name: str) -> UnknownAccount:
    return UnknownAccount(f"The account {id_or_name!r} does not exist; see the list of accounts.")


def _exists(name: str, *, is_closed: bool = False) -> AccountExists:
    closed = " It is closed, and its name stays taken: records are found by it."
    return AccountExists(f"An account named {name!r} exists already.{closed if is_closed else ''}")


URL_LENGTH_MAX: Final = 2048
_PORTS: Final = {"http": 80, "https": 443}
_HOST_LENGTH_MAX: Final = 253
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_ADDRESS: Final = re.compile(
    rf"(https?)://((?:{_LABEL}\.)*{_LABEL}|\[[0-9a-f:]+\])(?::([0-9]{{1,5}}))?([/?#].*)?",
    re.ASCII | re.IGNORECASE,
)
_UNSAFE: Final = re.compile(r"""[^!-~]|[\\"<>^`{|}]""")
_EXPECTED: Final = "an origin is scheme, host and port, such as https://shop.example"


def origin_of(url: str) -> str | None:
    """Scheme, host and port of an address, as browsers write an origin (RFC 6454 §6.2).

    None if it is no http or https address, has user info, or characters that addresses cannot have:
    programs could read different hosts from it.
    """
    found = _parse(url)
    return None if found is None else found[0]


def parse_origin(text: str) -> str | None:
    """An origin as given by an account; nothing may follow the port. None if it is no origin."""
    found = _parse(text)
    return found[0] if found is not None and found[1] in {"", "/"} else None


def _parse(url: str) -> tuple[str, str] | None:
    """The origin of an address, and what follows the port."""
    match = None if len(url) > URL_LENGTH_MAX or _UNSAFE.search(url) else _ADDRESS.fullmatch(url)
    if match is None:
        return None
    scheme, host, port, rest = match.group(1).lower(), match.group(2).lower(), match[3], match[4]
    number = _PORTS[scheme] if port is None else int(port)
    if not 0 < number <= PORT_MAX or not _is_written_as_browsers_do(host):
        return None
    shown = "" if number == _PORTS[scheme] else f":{number}"
    return f"{scheme}://{host}{shown}", rest or ""


def _is_written_as_browsers_do(host: str) -> bool:
    """They write each IP address in one way, whatever was typed."""
    try:
        if host.startswith("["):
            return f"[{IPv6Address(host[1:-1])}]" == host
        if NUMBER.fullmatch(host.rpartition(".")[2]):
            return str(IPv4Address(host)) == host
    except ValueError:
        return False
    return len(host) <= _HOST_LENGTH_MAX


def register(connection: Connection, access: Access, account_id: str, text: str) -> str:
    """Register an origin; returns it as browsers write it. A no-op if it is registered."""
    origin, account_id = _checked(text), lock_account(connection, account_id).id
    if origin not in origins_of(connection, account_id):
        audit = access.audit.entry(AuditAction.ORIGIN_ADDED, account_id, origin=origin)
        row = {"account_id": account_id, "origin": origin, "added_at": audit.at}
        connection.execute(insert(account_origins), row)
        write_audit(connection, audit)
    return origin


def unregister(connection: Connection, access: Access, account_id: str, text: str) -> str:
    """Take an origin away; sessions that exist keep it."""
    origin, account_id = _checked(text), lock_account(connection, account_id).id
    own = account_origins.c.account_id == account_id, account_origins.c.origin == origin
    if not connection.execute(delete(account_origins).where(*own)).rowcount:
        raise InvalidArgument(f"The origin {origin} is not registered for this account.")
    audit = access.audit.entry(AuditAction.ORIGIN_REMOVED, account_id, origin=origin)
    write_audit(connection, audit)
    return origin


def origins_of(connection: Connection, account_id: str) -> Sequence[str]:
    """The registered origins of an account, in their order."""
    own = account_origins.c.account_id == account_id
    found = select(account_origins.c.origin).where(own).order_by(account_origins.c.origin)
    return connection.execute(found).scalars().all()


def _checked(text: str) -> str:
    origin = parse_origin(text)
    if origin is None:
        raise InvalidArgument(f"{text!r} is not an origin: {_EXPECTED}.")
    return origin
