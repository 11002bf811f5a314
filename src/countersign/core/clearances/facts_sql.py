"""The stored facts about orders to decide: a few statements for many orders."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, delete, func, insert, select

from countersign.base.db.statements import (
    BulkInsert,
    Deferred,
    DriverStatement,
    SelectAmong,
    statements_of,
)
from countersign.base.db.tables import (
    accounts,
    acknowledgment_uses,
    clearance_settings,
    clearances,
    disclosures,
    overrides,
    records,
)
from countersign.base.errors import InvalidArgument, OrderReferenceMissing, RateLimited
from countersign.base.values import CLEARANCE, MODES, Mode, earliest_id, from_ms, to_ms
from countersign.core.access.account import find_account
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.key import Principal
from countersign.core.access.reach import AccountReach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers.model import Buyer
from countersign.core.buyers.rules import VerificationRules
from countersign.core.buyers.sql import buyers_by_cbid, verification_rules_of
from countersign.core.buyers.zips import ZipSubject, ZipTries
from countersign.core.clearances.model import (
    AcknowledgmentFacts,
    AcknowledgmentUse,
    ClearanceResult,
    ClearanceRules,
    GrantedClearance,
    NewClearance,
    OrderFacts,
    StoredVerification,
)
from countersign.core.clearances.room import Clearances
from countersign.core.clearances.schemas import ClearanceReason
from countersign.core.log.blind_runs import found_by
from countersign.core.orders.model import OrderAct, OrderState
from countersign.core.orders.sql import bound_key, indexed_keys, key_of, write_acts
from countersign.core.parties import bound_in

_SQL: Final = statements_of(__package__)
_update_use: Final = DriverStatement(_SQL["bind_use"])
_insert_uses: Final = BulkInsert(
    acknowledgment_uses,
    *("ack_id", "account_id", "mode", "cbid", "cbid_index", "order_index", "clearance_id"),
)


class _Record(msgspec.Struct):
    notice_version: str = ""
    test_clock: datetime | None = None
    order_named: bool | None = None
    reasons: tuple[str, ...] = ()
    obligations: tuple[dict[str, Any], ...] = ()


_read_record: Final = msgspec.json.Decoder(_Record).decode

_select_acknowledgments: Final = SelectAmong(_SQL["acknowledgments"])
# Two servers that clear with one acknowledgment take turns (PostgreSQL; the embedded database has
# one writer), in one order.
_select_uses: Final = SelectAmong(_SQL["uses"], for_update=True)
_select_earlier: Final = SelectAmong(_SQL["granted"])
_select_verifications: Final = SelectAmong(_SQL["verifications"])
_select_blocks: Final = SelectAmong(_SQL["blocks"])
_select_rules: Final = SelectAmong(_SQL["rules"])
_select_cleared: Final = SelectAmong(_SQL["cleared"])


def with_uses(connection: Connection, batch: Sequence[NewClearance]) -> list[NewClearance]:
    """The orders, those without an acknowledgment with the first clearance of their session.

    It counts if it was granted, or its refusal overridden.
    """
    exempt = {_place(new): new for new in reversed(batch) if new.order.ack_id is None}
    if exempt:  # the first one has no row to lock: two servers take turns by the account
        owners = accounts.c.id.in_({new.account_id for new in exempt.values()})
        connection.execute(select(accounts.c.id).where(owners).order_by("id").with_for_update())
    c, first = clearances.c, dict[object, str]()
    for place, new in exempt.items():
        known = select(func.min(c.ack_id)).where(
            c.id == disclosures.c.record_id,
            found_by(connection, disclosures.c.session_index, new.session_index),
            AccountReach(new.account_id, new.mode).rows(clearances),
            c.ack_id > earliest_id(CLEARANCE, 0),
            c.kid.is_not(None) | c.id.in_(select(overrides.c.clearance_id)),
        )
        first[place] = connection.execute(known).scalar() or new.clearance_id
    return [
        replace(new, use_id=first[_place(new)]) if new.order.ack_id is None else new
        for new in batch
    ]


def _place(new: NewClearance) -> tuple[str, Mode, bytes]:
    return new.account_id, new.mode, new.session_index


class BatchFacts:
    """The facts about the orders of one transaction, and their changes."""

    def __init__(
        self, connection: Connection, secret: DeploymentSecret, batch: Sequence[NewClearance]
    ) -> None:
        """Read all facts; the rows that bind an acknowledgment are locked."""
        ack_ids = sorted({new.use_id for new in batch})
        self._secret = secret
        self._uses = {
            ack_id: AcknowledgmentUse._make([*use, paid_at and from_ms(paid_at)])
            for ack_id, *use, paid_at in _select_uses(connection, ack_ids)
        }
        self._added: dict[str, NewClearance] = {}
        self._changed: set[str] = set()
        self._acknowledgments = _acknowledgments(connection, ack_ids)
        self._earlier = _earlier(connection, self._uses.values())
        cbids = [new.order.cbid for new in batch]
        cbids += [use.cbid for use in self._uses.values() if use.cbid]
        self._buyers = buyers_by_cbid(connection, cbids, follow=True)
        self._blocks = {*_select_blocks(connection, {b.cbid for b in self._buyers.values()})}
        self._verifications = _verifications(connection, self._buyers)
        self._simulated = _simulated(self._verifications, self._buyers)
        accounts = {new.account_id for new in batch}
        self.parties = bound_in(connection, {(new.account_id, new.mode) for new in batch})
        """By account and mode: the parties' records that the record of a decision binds."""
        self._rules = rules_of(connection, accounts)
        self._buyer_rules: Mapping[str, VerificationRules] = {}
        if any(buyer.proofs or not buyer.simulated for buyer in self._buyers.values()):
            self._buyer_rules = verification_rules_of(connection, accounts)
        unmet = [new for new in batch if not self._verifications_of(new)]
        cbids += [buyer.cbid for buyer in self._buyers.values()]
        met = {*_select_cleared(connection, {*cbids})} if unmet else ()
        self._strangers = {
            new.clearance_id
            for new in unmet
            if all((new.account_id, new.mode.value, cbid) not in met for cbid in self._cbids(new))
        }
        subjects = {subject for new in batch if (subject := self._subject(new)) is not None}
        self._tries = ZipTries(connection, subjects)

    def of(self, new: NewClearance) -> OrderFacts:
        account_id, given = new.account_id, new.order.ack_id
        acknowledgment = self._acknowledgments.get((account_id, new.mode, given or ""))
        use = self._uses.get(new.use_id) if acknowledgment or given is None else None
        buyer = self._buyer(new)
        bound = self._buyers.get(use.cbid) if use and use.cbid else None
        _, sandbox_zips = self._simulated.get(buyer.cbid, _REAL) if buyer else _REAL
        return OrderFacts(
            acknowledgment=acknowledgment,
            use=use,
            earlier=self._earlier.get(use.clearance_id) if use and use.clearance_id else None,
            shipped=self._earlier.get(use.shipped_under) if use and use.shipped_under else None,
            buyer=buyer,
            is_strange=new.mode is Mode.LIVE and new.clearance_id in self._strangers,
            is_blocked=buyer is not None
            and (account_id, new.mode.value, buyer.cbid) in self._blocks,
            bound_to=bound.cbid if bound else None,
            buyer_rules=self._buyer_rules.get(account_id),
            sandbox_zips=sandbox_zips,
            rules=self._rules.get(account_id) or ClearanceRules(),
            verifications=self._verifications_of(new),
        )

    def count_zip(self, new: NewClearance, reasons: Collection[str]) -> RateLimited | None:
        """The refusal if the ZIP code of this order is one too many for its buyer.

        Wrong codes of accounts that have not met the buyer count together.
        """
        subject, is_wrong = self._subject(new), ClearanceReason.ZIP_MISMATCH in reasons
        counts = is_wrong or new.clearance_id not in self._strangers
        return subject and self._tries.count(subject, new.zip_index, new.at, counts=counts)

    def apply(self, new: NewClearance, result: ClearanceResult) -> None:
        """Bind the acknowledgment as decided; the orders that follow in the batch see it."""
        ack_id, granted = new.use_id, result.granted
        use = self._uses.get(ack_id)
        if use is None and result.binds:
            use = self._uses[ack_id] = AcknowledgmentUse(new.order.cbid, new.cbid_index)
            self._added[ack_id] = new
        if use is not None and granted is not None and result.is_new:
            self._uses[ack_id] = use._replace(
                order_index=new.order_index, clearance_id=new.clearance_id
            )
            self._changed.add(ack_id)
            self._earlier[new.clearance_id] = granted

    def bind(self, new: NewClearance) -> None:
        """Bind the acknowledgment to a manually overridden order, unless it is another's."""
        known = new.order.cbid if self._buyer(new) else None
        use = self._uses.get(new.use_id)
        if use is None:
            use, self._added[new.use_id] = AcknowledgmentUse(known, new.cbid_index), new
        if use.order_index is None:
            self._uses[new.use_id] = use._replace(order_index=new.order_index)
            self._changed.add(new.use_id)

    def overridden(
        self, connection: Connection, new: NewClearance, result: ClearanceResult
    ) -> ClearanceResult:
        """The overridden refusal, if it has all reasons of this one; else this one.

        A new reason, another order and an expired override give a new refusal.
        """
        o, d = overrides.c, disclosures.c
        rules = self._rules.get(new.account_id) or ClearanceRules()
        found = select(o.id, o.clearance_id, records.c.body).join(records, records.c.id == o.id)
        found = found.join(disclosures, d.record_id == o.clearance_id).order_by(o.id.desc())
        found = found.where(o.order_index == new.order_index, o.mode == new.mode)
        found = found.where(d.cbid_index == new.cbid_index)
        found = found.where(o.at > new.at - rules.acknowledgment_max_age)
        if new.reference_index is not None:
            found = found.where(d.reference_index == new.reference_index)
        for id_, clearance_id, body in connection.execute(found):
            read = _read_record(body)
            if {*result.reasons} <= {*read.reasons}:
                made, duties = (id_, clearance_id), read.obligations
                return replace(result, is_new=False, override=made, obligations=duties)
        return result

    def defer(self, connection: Connection, deferred: Deferred) -> None:
        """Write the changes of the orders, or leave them for the end of the transaction."""
        added = [
            (id_, new.account_id, new.mode.value, *self._uses[id_][:4])
            for id_, new in sorted(self._added.items())
        ]
        _insert_uses.defer(connection, deferred, added)
        for id_ in sorted(self._changed.difference(self._added)):
            use = self._uses[id_]
            _update_use.defer(connection, deferred, use.order_index, use.clearance_id, id_)
        self._tries.write()

    def write_acts(
        self, connection: Connection, decided: Sequence[tuple[NewClearance, ClearanceResult]]
    ) -> None:
        """Join decisions and their checks to the order of their acknowledgment or session."""
        ack_ids = {new.use_id for new, _ in decided}
        keys = {id_: bytes(key) for id_, key in indexed_keys(connection, ack_ids)}
        acts = list[OrderAct]()
        for new, result in decided:
            ack_id, granted = new.use_id, result.granted
            ack = self._acknowledgments.get((new.account_id, new.mode, ack_id))
            if ack is None:
                named = new.session_index, new.reference_index
                key = bound_key(connection, AccountReach(new.account_id, new.mode), *named)
                key = key or key_of(*named, new.clearance_id)
            else:
                key = keys.get(ack_id) or key_of(ack.session_index, ack.reference_index, ack_id)
            act = OrderAct(new.account_id, new.mode, to_ms(new.at), key, new.clearance_id)
            if result.override is not None:
                made = act._replace(member_id=result.override[0])
                acts.append(made._replace(state=OrderState.OVERRIDDEN))
                continue
            if granted is None:
                acts.append(act._replace(state=OrderState.REFUSED))
            else:
                # Also where it is given again: another request may have been refused since.
                given = act._replace(member_id=granted.clearance_id)
                until = to_ms(granted.expires_at)
                acts.append(given._replace(state=OrderState.CLEARED, due_at=until))
            if result.verification is not None and result.is_new:
                acts.append(act._replace(member_id=result.verification))
        write_acts(connection, acts)

    def _buyer(self, new: NewClearance) -> Buyer | None:
        buyer = self._buyers.get(new.order.cbid)
        return buyer if buyer is not None and buyer.mode is new.mode else None

    def _verifications_of(self, new: NewClearance) -> Sequence[StoredVerification]:
        """The account's own verifications of the buyer, oldest first."""
        found = [one for cbid in self._cbids(new) for one in self._verifications.get(cbid, ())]
        own = (new.account_id, new.mode)
        return sorted(one for one in found if (one.account_id, one.mode) == own)

    def _cbids(self, new: NewClearance) -> set[str]:
        """The identifiers of the buyer that are known here."""
        buyer = self._buyer(new)
        return set() if buyer is None else {new.order.cbid, buyer.cbid}

    def _subject(self, new: NewClearance) -> ZipSubject | None:
        buyer = self._buyer(new)
        if buyer is None:
            return None
        # In the sandbox the guesses of a session count, as in its verification: there each ZIP
        # code makes another buyer.
        index, _ = self._simulated.get(buyer.cbid, _REAL)
        if new.clearance_id in self._strangers:
            index = self._secret.blind_index("strangers", "strange_buyer", buyer.cbid)
        elif index is None or buyer.account_id != new.account_id:
            index = self._secret.blind_index(new.account_id, "buyer", buyer.cbid)
        return ZipSubject(new.account_id, new.mode, index)


_Simulated: TypeAlias = tuple[bytes | None, frozenset[bytes]]
"""For a simulated buyer: the keyed hash of its session, and those of its ZIP codes."""
_REAL: Final[_Simulated] = (None, frozenset())


def _acknowledgments(
    connection: Connection, ack_ids: Iterable[str]
) -> dict[tuple[str, Mode, str], AcknowledgmentFacts]:
    """The existing ones of these acknowledgments, by account, mode and identifier."""
    found = {}
    for row in _select_acknowledgments(connection, ack_ids):
        id_, account_id, mode, at, notice_id, body, kept, *indexes = row
        session_index, cbid_index, reference_index = indexes
        record = _read_record(body)
        found[account_id, MODES[mode], id_] = AcknowledgmentFacts(
            # By the clock that its age goes by.
            accepted_at=record.test_clock or from_ms(at),
            notice_id=notice_id,
            notice_version=record.notice_version,
            session_index=session_index,
            cbid_index=cbid_index,
            reference_index=reference_index,
            erased=kept is None,
        )
    return found


def _earlier(
    connection: Connection, uses: Iterable[AcknowledgmentUse]
) -> dict[str, GrantedClearance]:
    """The clearances of these orders, by identifier: the newest, and that of the shipment."""
    ids = {id_ for use in uses for id_ in (use.clearance_id, use.shipped_under) if id_}
    found = {}
    for id_, kid, at, expires_at, body, reference in (
        _select_earlier(connection, ids) if ids else ()
    ):
        record, named = _read_record(body), reference is not None
        found[id_] = GrantedClearance(
            clearance_id=id_,
            kid=kid,
            at=from_ms(at),
            clock_at=record.test_clock or from_ms(at),
            expires_at=from_ms(expires_at),
            reference_index=reference,
            order_named=named if record.order_named is None else record.order_named,
        )
    return found


def _verifications(
    connection: Connection, buyers: Mapping[str, Buyer]
) -> dict[str, list[StoredVerification]]:
    """The verifications of these buyers, by any of their identifiers that are known here."""
    cbids = {*buyers, *(buyer.cbid for buyer in buyers.values())}
    found: dict[str, list[StoredVerification]] = {}
    for id_, account_id, mode, cbid, *of_it in (
        _select_verifications(connection, cbids) if cbids else ()
    ):
        one = StoredVerification(id_, account_id, MODES[mode], *of_it)
        found.setdefault(cbid, []).append(one)
    return found


def _simulated(
    verifications: Mapping[str, Sequence[StoredVerification]], buyers: Mapping[str, Buyer]
) -> dict[str, _Simulated]:
    """The simulated ones of these buyers."""
    cbids = {buyer.cbid for buyer in buyers.values() if buyer.simulated and not buyer.proofs}
    return {
        cbid: (made[-1].subject_index, frozenset(z for v in made if (z := v.zip_index)))
        for cbid in cbids
        if (made := verifications.get(cbid))
    }


def rules_of(connection: Connection, account_ids: Iterable[str]) -> dict[str, ClearanceRules]:
    """The clearance rules of these accounts; those without any use the defaults."""
    names = ClearanceRules.__struct_fields__
    return {
        id_: msgspec.convert(dict(zip(names, row, strict=True)), ClearanceRules, strict=False)
        for id_, *row in _select_rules(connection, account_ids)
    }


async def set_rules(room: Clearances, id_or_name: str, rules: ClearanceRules) -> str:
    """Set an account's rules from the next clearance on; returns the account's id."""
    mistake = rules.mistake()
    if mistake is not None:
        raise InvalidArgument(mistake)
    account = await find_account(room.access, id_or_name)
    audit = room.access.audit.entry(
        AuditAction.CLEARANCE_SETTINGS_CHANGED,
        account.id,
        **rules.demands(),
        **rules.seconds(),
        overrides_per_day=rules.overrides_per_day,
    )
    row: dict[str, object] = {"account_id": account.id, "changed_at": audit.at}
    row |= {name.removesuffix("_seconds"): value for name, value in audit.details.items()}

    def put(connection: Connection) -> None:
        of_account = clearance_settings.c.account_id == account.id
        connection.execute(delete(clearance_settings).where(of_account))
        connection.execute(insert(clearance_settings), row)
        write_audit(connection, audit)

    await room.access.database.write(put)
    return account.id


async def get_rules(room: Clearances, id_or_name: str) -> tuple[str, ClearanceRules]:
    """The account's id and rules; the defaults if none were set."""
    account = await find_account(room.access, id_or_name)
    rules = await room.access.database.read(rules_of, [account.id])
    return account.id, rules.get(account.id, ClearanceRules())


async def refuse_unnamed(room: Clearances, who: Principal, reference: str | None) -> None:
    """Refuse a live order without a reference where its account demands one.

    Raises:
        OrderReferenceMissing: it has none.
    """
    if reference is None and who.mode is Mode.LIVE:
        found = await room.access.database.read(rules_of, [who.account_id])
        if found.get(who.account_id, ClearanceRules()).order_reference_required:
            raise OrderReferenceMissing
