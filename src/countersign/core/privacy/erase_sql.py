"""Erasing in the database: disclosures and their keys go, records and their entries stay."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    insert,
    literal_column,
    not_,
    select,
    union,
    update,
)

from countersign.base.db.schema import put_value
from countersign.base.db.statements import chunks, rows
from countersign.base.db.tables import (
    EVENT_OF_BUYER,
    acknowledgment_uses,
    blanks,
    buyers,
    checkout_sessions,
    clearances,
    deployment,
    disclosures,
    erasures,
    events,
    fulfilments,
    notice_versions,
    overrides,
    personal_columns,
    provider_sessions,
    records,
    shred_keys,
    verification_evidence,
    verifications,
    waiting_erasures,
    webhook_deliveries,
    webhook_endpoints,
    zip_attempts,
)
from countersign.base.values import ACKNOWLEDGMENT, CLEARANCE, Mode, is_id, to_ms
from countersign.core.access.idempotency import forget_answers
from countersign.core.access.reach import AccountReach, Reach
from countersign.core.access.secrets import INDEX_BYTES, DeploymentSecret
from countersign.core.acknowledgments.find import read_record
from countersign.core.buyers.model import Buyer, BuyerStatus, ProvedSession
from countersign.core.buyers.sql import buyers_by_cbid, erased_name, write_buyer
from countersign.core.checkout.store import erase_contents
from countersign.core.clearances.read import decided_in
from countersign.core.log.blind_runs import found_by
from countersign.core.log.record import RecordType
from countersign.core.orders.sql import index_acts
from countersign.core.privacy.model import (
    Erasable,
    ErasableBuyer,
    ErasureReason,
    RecordErasure,
    years_after,
)
from countersign.core.privacy.person_sql import (
    cbid_indexes,
    find_person,
    find_relying,
    find_ties,
    identifiers_of,
    marks_of,
)
from countersign.core.vault.vault import COPIES_REMAIN

SELECT_ERASABLE: Final = select(
    records.c.id.label("record_id"),
    records.c.account_id,
    records.c.mode,
    records.c.at,
    records.c.body,
    erasures.c.at.label("erased_at"),
).outerjoin(erasures, erasures.c.record_id == records.c.id)


def find_retention_years(connection: Connection) -> dict[str, int]:
    """Years to keep evidence, by the notice's digest, and by id and version.

    Unlimited ones are absent.
    """
    found = dict[str, int | None]()
    for row in connection.execute(select(notice_versions)):
        years = msgspec.json.decode(row.body).get("retention_years")
        found |= {row.digest: years, f"{row.notice_id} {row.version}": years}
    return {digest: years for digest, years in found.items() if years is not None}


def kept_until(record: Erasable, years: Mapping[str, int]) -> datetime | None:
    """When the retention of an acknowledgment, or of a clearance without one, ends; None: never."""
    about = list[str]()
    if is_id(ACKNOWLEDGMENT, record.record_id):
        about = [read_record(record.body).notice_digest]
    elif is_id(CLEARANCE, record.record_id):
        waived = decided_in(record.body).exempt_from or ()
        about = [f"{one.notice_id} {one.version}" for one in waived]
    kept = [years[one] for one in about if one in years]
    return years_after(record.at, max(kept)) if kept else None


def find_records(
    connection: Connection, reach: Reach, *conditions: ColumnElement[bool]
) -> list[Erasable]:
    """The records in reach that match the condition."""
    return rows(connection, SELECT_ERASABLE.where(reach.rows(records), *conditions), Erasable)


def find_buyer(
    connection: Connection, secret: DeploymentSecret, cbid: str, reach: Reach
) -> ErasableBuyer | None:
    """The buyer with this identifier; None: no buyer in reach."""
    names = identifiers_of(connection, cbid)
    if isinstance(reach, AccountReach) and not find_ties(connection, secret, names, reach):
        return None
    person = find_person(connection, secret, cbid, reach)
    own = select(buyers.c.account_id, buyers.c.mode).where(buyers.c.cbid == person.cbids[0])
    known = connection.execute(own).one_or_none()
    if known is None:
        return None
    relying = find_relying(connection, secret, person.cbids, reach)
    owned = reach if isinstance(reach, AccountReach) else known
    owner = (owned.account_id, Mode(owned.mode))
    return ErasableBuyer(
        cbids=person.cbids,
        owner=owner,
        accounts=frozenset({owner, *((tie.account_id, tie.mode) for tie in relying)}),
        verifications=find_verifications(connection, person.cbids, reach),
        sessions=person.references,
    )


def find_verifications(
    connection: Connection, cbids: Sequence[str], reach: Reach
) -> list[Erasable]:
    """The records of the verifications of these buyers."""
    own = select(verifications.c.id).where(verifications.c.cbid.in_(cbids))
    return find_records(connection, reach, records.c.id.in_(own))


def find_naming(
    connection: Connection, secret: DeploymentSecret, cbids: Sequence[str], reach: Reach
) -> list[Erasable]:
    """The acknowledgments and clearances that name a buyer."""
    named = records.c.type.in_((RecordType.ACKNOWLEDGMENT, RecordType.CLEARANCE))
    d = disclosures.c
    return [
        record
        for chunk in chunks([*cbid_indexes(connection, secret, cbids, reach)])
        for own in [select(d.record_id).where(found_by(connection, d.cbid_index, *chunk))]
        for record in find_records(connection, reach, records.c.id.in_(own), named)
    ]


def find_order_records(connection: Connection, ids: Sequence[str], reach: Reach) -> list[Erasable]:
    """The clearances requested with these acknowledgments, the fulfilments reported of them.

    And the manual overrides of all clearances, of those in `ids` too.
    """
    found, o = list[Erasable](), overrides.c
    for chunk in chunks(ids):
        decided, reported = (
            select(table.c.id).where(table.c.ack_id.in_(chunk), of_own(table))
            for table in (clearances, fulfilments)
        )
        overriding = select(o.id).where(o.clearance_id.in_(chunk) | o.clearance_id.in_(decided))
        for own in (decided, reported, overriding):
            found += find_records(connection, reach, records.c.id.in_(own))
    return found


def of_own(table: Table) -> ColumnElement[bool]:
    """The condition that a clearance or fulfilment has the account and mode of its acknowledgment.

    A request can name any: it is refused, and no part of the order of another account.
    """
    ack, own = records.alias(), table.c
    same = (ack.c.id == own.ack_id, ack.c.account_id == own.account_id, ack.c.mode == own.mode)
    return select(ack.c.id).where(*same).exists()


def find_accounts_of(
    connection: Connection, cbids: Sequence[str], reach: Reach
) -> list[tuple[str, Mode]]:
    """The accounts with data that goes with a buyer of these identifiers."""
    owned = [
        select(c.table.c.account_id, c.table.c.mode).where(c.in_(cbids), reach.rows(c.table))
        for c in (buyers.c.cbid, *personal_columns("check", name="cbid"))
    ]
    return [(row.account_id, Mode(row.mode)) for row in connection.execute(union(*owned))]


def find_erased(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Those of these records that are erased."""
    e = erasures.c.record_id
    written = [select(e).where(e.in_(some)) for some in chunks(ids)]
    return {id_ for query in written for id_ in connection.execute(query).scalars()}


def destroy_disclosures(connection: Connection, part: RecordErasure) -> None:
    """Destroy the disclosures and evidence of these records with their keys."""
    for chunk in chunks(part.record_ids):
        index_acts(connection, chunk)
        for table in (column.table for column in personal_columns("content")):
            connection.execute(delete(table).where(table.c.record_id.in_(chunk)))
        erased = find_erased(connection, chunk)
        new = [
            {"record_id": id_, "at": part.erasure.at, "erasure_id": part.erasure.id}
            for id_ in chunk
            if id_ not in erased
        ]
        if new:
            connection.execute(insert(erasures), new)
        connection.execute(delete(waiting_erasures).where(waiting_erasures.c.record_id.in_(chunk)))
        _forget_uses(connection, acknowledgment_uses.c.ack_id.in_(chunk))
        their = (overrides.c.id.in_(chunk), clearances.c.id == overrides.c.clearance_id)
        bound = select(clearances.c.ack_id).where(*their, of_own(clearances))
        _forget_uses(connection, acknowledgment_uses.c.ack_id.in_(bound))
        own = update(overrides).where(overrides.c.id.in_(chunk))
        connection.execute(own.values(blanks(overrides, "order")))
        _forget_zips(connection, chunk, part.erasure.at)
        # Last: PostgreSQL lets the key of a record go only once its erasure is written.
        connection.execute(delete(shred_keys).where(shred_keys.c.record_id.in_(chunk)))


def _forget_uses(connection: Connection, named: ColumnElement[bool]) -> None:
    """Overwrite the blind indexes of buyer and order; the acknowledgments stay used."""
    uses = acknowledgment_uses.c
    for row in connection.execute(select(uses.ack_id, uses.order_index).where(named)).all():
        order_index = row.order_index and os.urandom(INDEX_BYTES)
        bare = blanks(acknowledgment_uses, "order") | {"order_index": order_index}
        own = update(acknowledgment_uses).where(uses.ack_id == row.ack_id)
        connection.execute(own.values(bare))


def _forget_zips(connection: Connection, ids: Sequence[str], at: datetime) -> None:
    """Destroy the keyed hashes of ZIP codes of these verifications, except those that still count.

    A buyer who stays is verified for the proved ZIP codes until the proof expires.
    Simulated data counts as long as its buyer exists.
    """
    v = verifications.c
    live = (v.id.in_(ids), v.mode == Mode.LIVE)
    rows = connection.execute(select(v.cbid, v.session_index, v.account_id).where(*live)).all()
    connection.execute(update(verifications).where(*live).values(zip_index=None))
    named = buyers.c.cbid.in_([row.cbid for row in rows])
    decides = buyers.c.attempted_by.in_({row.account_id for row in rows})
    proposed = update(buyers).where(named, decides, buyers.c.proposal.is_not(None))
    connection.execute(proposed.values(proposal=None))
    sessions = {row.session_index.hex() for row in rows if row.session_index}
    for before in buyers_by_cbid(connection, [row.cbid for row in rows], to_change=True).values():
        proofs = tuple(
            replace(proof, zips=())
            if proof.session in sessions and proof.expires_at <= to_ms(at)
            else proof
            for proof in before.proofs
        )
        write_buyer(connection, before, replace(before, proofs=proofs))


def forget_sessions(  # noqa: PLR0917 - of one statement
    connection: Connection,
    secret: DeploymentSecret,
    ids: Sequence[str],
    reach: Reach,
    cbids: Sequence[str] = (),
    held: Container[str] = (),
) -> None:
    """Destroy what checkout sessions in reach hold of these records or sessions, or of this buyer.

    `held`: the sessions that a hold keeps with all that they tell. Stored responses that name
    erased objects are deleted too.
    """
    c = checkout_sessions.c
    sessions = select(c.id).where(c.content.is_not(None), reach.rows(checkout_sessions))
    erased = [*ids, *cbids]
    for named in (
        *(c.ack_id.in_(chunk) | c.id.in_(chunk) for chunk in chunks(ids)),
        *map(c.cbid_index.in_, chunks([*cbid_indexes(connection, secret, cbids, reach)])),
    ):
        found = [one for one in connection.scalars(sessions.where(named)) if one not in held]
        erase_contents(connection, found)
        erased += found
    for chunk in chunks(erased):
        forget_answers(connection, secret, chunk, reach)


def forget_ties(
    connection: Connection,
    secret: DeploymentSecret,
    cbids: Sequence[str],
    kept: Sequence[str],
    reach: Reach,
) -> None:
    """Destroy the data about a buyer that accounts in reach have outside of records.

    `kept`: the records on hold, with their contents.
    """
    verified = and_(verifications.c.cbid.in_(cbids), reach.rows(verifications))
    own = select(verifications.c.id).where(verified)
    guesses = select(verifications.c.subject_index).where(verified)
    e, keys, tries = verification_evidence.c, shred_keys.c, zip_attempts.c
    asked = cbid_indexes(connection, secret, cbids, reach, tries.subject_index)
    sent = webhook_deliveries.c
    endpoints = select(webhook_endpoints.c.id).where(reach.rows(webhook_endpoints))
    used = acknowledgment_uses.c.cbid.in_(cbids)
    _forget_uses(connection, and_(used, reach.rows(acknowledgment_uses)))
    for statement in (
        # The events stay in place as long as other events, and name no one.
        update(events)
        .where(literal_column(EVENT_OF_BUYER, Boolean()), events.c.object_id.in_(cbids))
        .where(reach.rows(events))
        .values(reasons=None, object_id=""),
        delete(verification_evidence).where(e.record_id.in_(own), e.record_id.not_in(kept)),
        delete(shred_keys).where(keys.record_id.in_(own), keys.record_id.not_in(kept)),
        delete(zip_attempts).where(
            tries.subject_index.in_(guesses) | tries.subject_index.in_([*asked]),
            reach.rows(zip_attempts),
        ),
        delete(verifications).where(verified),
        # Whoever they name.
        update(webhook_deliveries)
        .where(sent.response.is_not(None), sent.endpoint_id.in_(endpoints))
        .values(response=None),
        *(
            delete(c.table).where(c.in_(cbids), reach.rows(c.table))
            for c in personal_columns("buyer", name="cbid")
            if "account_id" in c.table.c
        ),
    ):
        connection.execute(statement)


def leave_buyer(connection: Connection, relying: Mapping[str, str], reach: AccountReach) -> None:
    """Remove an account from buyers on whom others rely: by identifier, one of those.

    The facts stay, without the provider's session, and answer the others as before. It comes
    before `forget_ties`.
    """
    v, p, account_id = verifications.c, provider_sessions.c, reach.account_id
    of_person = and_(v.cbid.in_(relying), v.session_index.is_not(None))
    asked = select(v.session_index).where(of_person, reach.rows(verifications))
    others = select(v.session_index).where(of_person, not_(reach.rows(verifications)))
    mine = and_(p.mode == reach.mode, p.cbid.in_(relying))
    own = (p.session_index.in_(asked), p.session_index.not_in(others))
    connection.execute(delete(provider_sessions).where(mine, *own))
    reviewed = and_(buyers.c.cbid.in_(relying), buyers.c.attempted_by == account_id)
    connection.execute(update(buyers).where(reviewed).values(proposal=None, dismissed=None))
    for before in buyers_by_cbid(connection, [*relying], to_change=True).values():
        owner = relying[before.cbid] if before.account_id == account_id else before.account_id
        after = replace(
            before,
            account_id=owner,
            proofs=tuple(_without(proof, before, account_id) for proof in before.proofs),
        )
        if before.attempted_by == account_id:
            after = replace(after, attempted_by=None, reasons=())
        write_buyer(connection, before, after)


def _without(proof: ProvedSession, buyer: Buyer, account_id: str) -> ProvedSession:
    """A proof without this account's part; no account may be left in it."""
    accounts = proof.accounts or (buyer.account_id,)
    if account_id not in accounts:
        return proof
    others = tuple(one for one in accounts if one != account_id)
    session = proof.session if others else os.urandom(INDEX_BYTES).hex()
    return replace(proof, accounts=others or ("",), session=session)


def forget_buyer(connection: Connection, cbids: Sequence[str]) -> None:
    """Destroy the shared data of a buyer, not accounts' own, under all these identifiers.

    A revocation stays, or erasing would be a way around it: then the identifiers, and the keyed
    hashes of documents and sessions, stay, and nothing else.
    """
    status = select(buyers.c.status).where(buyers.c.cbid == cbids[0])
    revoked = connection.execute(status).scalar() == BuyerStatus.REVOKED
    own = buyers.c.cbid.in_(cbids)
    connection.execute(update(buyers).where(own).values(blanks(buyers, "buyer")))
    for column in personal_columns("buyer", *(() if revoked else ("tombstone",)), name="cbid"):
        connection.execute(delete(column.table).where(column.in_(cbids)))


def wait_for_holds(
    connection: Connection, kept: Sequence[str], reason: ErasureReason, at: datetime
) -> None:
    """Note these records on hold, to be erased when the hold has ended."""
    for chunk in chunks(kept):
        connection.execute(delete(waiting_erasures).where(waiting_erasures.c.record_id.in_(chunk)))
        rows = [{"record_id": id_, "reason": reason, "at": at} for id_ in chunk]
        connection.execute(insert(waiting_erasures), rows)


def remember_erased(
    connection: Connection, secret: DeploymentSecret, cbids: Sequence[str], reach: Reach
) -> None:
    """Remember the erasure of a buyer with these identifiers, so that no backup undoes it.

    A buyer of the sandbox can come back under its identifier, and be erased again: therefore the
    value is another one each time. It is random: a time would lead to the records of the erasure.
    When an account leaves, it also lists the account's remaining data about the buyer, separately
    from later data.
    """
    for cbid in cbids:
        value = os.urandom(INDEX_BYTES)
        if isinstance(reach, AccountReach):
            ties = find_ties(connection, secret, [cbid], reach)
            value += b"".join(marks_of(connection, ties).values())
        put_value(connection, erased_name(secret, cbid, reach), value)


def note_copies(connection: Connection, erasure_id: str) -> None:
    """Note that the write-ahead log of the embedded database may hold copies of erased data."""
    if connection.dialect.name == "sqlite":
        put_value(connection, COPIES_REMAIN, erasure_id.encode())


def delete_noted_copies(connection: Connection, noted: bytes) -> None:
    """Delete this note, if there is no newer one."""
    connection.execute(delete(deployment).filter_by(name=COPIES_REMAIN, value=noted))
