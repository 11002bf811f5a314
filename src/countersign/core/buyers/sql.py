"""Buyers, the list of their verifications, and the events of their status."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import asdict
from sqlalchemy import Connection, insert, select, update

from countersign.base.db.statements import SelectAmong
from countersign.base.db.tables import acknowledgment_uses, buyers, verifications
from countersign.base.values import MODES, Mode, from_ms
from countersign.core.access.reach import AccountReach, Reach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers.model import Buyer, BuyerStatus, ProvedSession, reminder_at, status_at
from countersign.core.buyers.rules import VerificationRules
from countersign.core.events.model import EventType, NewEvent
from countersign.core.events.sql import decoded_reasons, write_events

BuyerAndRules: TypeAlias = tuple[Buyer, VerificationRules | None]
"""A buyer, and the rules of the account that asks; None if it has no rules of its own."""

ERASED_BUYER: Final = "erased:"
"""Beginning of the names of deployment values that say: the buyer of this keyed hash was erased."""

NO_REASONS: Final = "[]"
_decode_proofs: Final = msgspec.json.Decoder(tuple[ProvedSession, ...]).decode
decode_rules: Final = msgspec.json.Decoder(VerificationRules).decode

_STATUSES: Final = {status.value: status for status in BuyerStatus}

_COLUMNS: Final = (
    "cbid, account_id, mode, status, reasons, verified_at, expires_at, simulated, proofs, same_as,"
    " attempted_by"
)
_TEXT: Final = f"SELECT {_COLUMNS} FROM buyers WHERE cbid {{}}"  # noqa: S608 - our own names
_select: Final = SelectAmong(_TEXT)
# Two servers that change one buyer take turns (PostgreSQL; the embedded database has one writer).
_select_to_change: Final = SelectAmong(_TEXT, for_update=True)
_select_rules: Final = SelectAmong(
    "SELECT account_id, rules FROM verification_settings WHERE account_id {}"
)


class StatusQuery(NamedTuple):
    """The buyer that an account asks about."""

    account_id: str
    mode: Mode
    cbid: str


def buyers_and_rules(
    connection: Connection, queries: Sequence[StatusQuery]
) -> list[BuyerAndRules | None]:
    """Buyers of these modes, whichever account verified them; None where there is none."""
    found = buyers_by_cbid(connection, [query.cbid for query in queries], follow=True)
    # Rules apply to a provider's proofs: a simulated buyer needs no such query.
    accounts = {
        q.account_id
        for q in queries
        if (buyer := found.get(q.cbid)) is not None and (buyer.proofs or not buyer.simulated)
    }
    rules = verification_rules_of(connection, accounts) if accounts else {}
    return [
        (buyer, rules.get(query.account_id))
        if (buyer := found.get(query.cbid)) is not None and buyer.mode is query.mode
        else None
        for query in queries
    ]


def verification_rules_of(
    connection: Connection, account_ids: Collection[str]
) -> dict[str, VerificationRules]:
    """The rules of the given accounts that have their own."""
    rows = _select_rules(connection, account_ids)
    return {account_id: decode_rules(rules) for account_id, rules in rows}


def buyers_by_cbid(
    connection: Connection, cbids: Sequence[str], *, to_change: bool = False, follow: bool = False
) -> dict[str, Buyer]:
    """The buyers that there are of these, by identifier.

    `follow`: each as the buyer that it was joined to.
    """
    select_, found = _select_to_change if to_change else _select, dict[str, Buyer]()
    for row in select_(connection, set(cbids)):
        cbid, account_id, mode, status, reasons, verified_at, expires_at, simulated, *rest = row
        proofs, same_as, attempted_by = rest
        found[cbid] = Buyer(
            cbid=cbid,
            account_id=account_id,
            mode=MODES[mode],
            status=_STATUSES[status],
            reasons=decoded_reasons(reasons) if reasons != NO_REASONS else (),
            verified_at=None if verified_at is None else from_ms(verified_at),
            expires_at=None if expires_at is None else from_ms(expires_at),
            simulated=bool(simulated),
            proofs=_decode_proofs(proofs) if proofs != "[]" else (),
            same_as=same_as,
            attempted_by=attempted_by,
        )
    others = [buyer.same_as for buyer in found.values() if buyer.same_as] if follow else []
    if not others:
        return found
    later = buyers_by_cbid(connection, others, to_change=to_change)
    return {cbid: later.get(buyer.same_as or "", buyer) for cbid, buyer in found.items()}


def write_buyer(connection: Connection, before: Buyer | None, after: Buyer) -> None:
    """Write the buyer if it is new or has changed."""
    if before is None:
        connection.execute(insert(buyers), _to_row(after) | _due(after))
    elif after != before:
        row = _to_row(after)
        connection.execute(update(buyers).filter_by(cbid=row.pop("cbid")).values(row))
        # What has its event keeps it.
        known, due = _due(before), _due(after)
        _set_due(connection, after, {name: at for name, at in due.items() if at != known[name]})


def write_change(connection: Connection, before: Buyer, after: Buyer, at: datetime) -> None:
    """Write the buyer, and the event of its new status, if it has changed."""
    if after != before:
        write_buyer(connection, before, after)
        write_status_event(connection, after, at)


def write_status_event(
    connection: Connection, buyer: Buyer, at: datetime, *, shown: datetime | None = None
) -> None:
    """Write the event of a buyer's new status; `pending` has none.

    `shown` is the time of a test clock; None: the sandbox uses real time.
    """
    status = status_at(buyer, shown or at)
    if buyer.contradicted and buyer.attempted_by is not None:
        # For all others it is verified as before.
        about = (buyer.mode, EventType.BUYER_REQUIRES_INPUT, buyer.cbid, at)
        write_events(connection, [NewEvent(buyer.attempted_by, *about, reasons=buyer.reasons)])
        return
    if status is BuyerStatus.EXPIRED:
        # Its event is written here and now.
        _set_due(connection, buyer, {"expiry_due_at": None, "reminder_due_at": None})
    if status is not BuyerStatus.PENDING:
        type_ = EventType(f"buyer.{status}")
        write_buyer_events(connection, type_, buyer.mode, buyer.cbid, at, buyer)


def write_buyer_events(  # noqa: PLR0917 - the columns
    connection: Connection,
    type_: EventType,
    mode: Mode,
    cbid: str,
    at: datetime,
    buyer: Buyer | None = None,
) -> None:
    """Write an event of a buyer for every account that has verified or cleared the buyer.

    `buyer` is given if there can be reasons: only the account that made the attempt gets them.
    An account that knows the buyer by another identifier of the same person gets the event under
    that identifier: no account learns an identifier that it did not have.
    """
    joined = select(buyers.c.account_id, buyers.c.cbid).filter_by(same_as=cbid)
    aliases = connection.execute(joined).all()
    verified = select(verifications.c.account_id).filter_by(cbid=cbid).distinct()
    uses, names = acknowledgment_uses.c, [cbid, *(alias.cbid for alias in aliases)]
    cleared = select(uses.account_id, uses.cbid).distinct()
    cleared = cleared.where(uses.cbid.in_(names), uses.clearance_id.is_not(None))
    known = {(account_id, cbid) for account_id in connection.execute(verified).scalars()}
    known |= {(alias.account_id, alias.cbid) for alias in aliases}
    known |= {(use.account_id, use.cbid) for use in connection.execute(cleared)}
    asked_by = buyer and buyer.asked_by
    write_events(
        connection,
        [
            NewEvent(
                *(account_id, mode, type_, name, at),
                reasons=buyer.reasons if buyer is not None and account_id == asked_by else (),
            )
            for account_id, name in sorted(known)
        ],
    )


def erased_name(secret: DeploymentSecret, cbid: str, reach: Reach) -> str:
    """The name of the deployment value that says that the buyer was erased in this reach."""
    if isinstance(reach, AccountReach):
        left = secret.blind_index(reach.account_id, "left", cbid, f"_{reach.mode}")
        return ERASED_BUYER + left.hex()
    return ERASED_BUYER + secret.blind_index("erased buyers", "cbid", cbid).hex()


def encoded_reasons(reasons: Sequence[str]) -> str:
    """The reasons as they are stored."""
    return msgspec.json.encode(reasons).decode()


def _due(buyer: Buyer) -> dict[str, datetime | None]:
    """When to report that the verification expires, and that it soon will.

    The reminder depends on the date alone: a buyer who is revoked and reinstated gets no second
    one.
    """
    verified = buyer.status is BuyerStatus.VERIFIED
    return {
        "expiry_due_at": buyer.expires_at if verified else None,
        "reminder_due_at": reminder_at(buyer),
    }


def _set_due(connection: Connection, buyer: Buyer, due: dict[str, datetime | None]) -> None:
    if due:
        connection.execute(update(buyers).where(buyers.c.cbid == buyer.cbid).values(due))


def _to_row(buyer: Buyer) -> dict[str, object]:
    encoded = {
        "reasons": encoded_reasons(buyer.reasons),
        "proofs": msgspec.json.encode(buyer.proofs).decode(),
    }
    return asdict(buyer) | encoded
