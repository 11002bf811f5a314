"""The audit of operators' acts and reads: permanent, written in the transaction of the act."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Select, insert, select

from countersign.base.db.database import Database
from countersign.base.db.statements import chunks, of_row
from countersign.base.db.tables import audit_log, audit_owners, buyer_references, buyers
from countersign.base.values import (
    ACCOUNT,
    BUYER,
    SANDBOX_BUYER,
    Clock,
    Entropy,
    Mode,
    from_ns,
    id_pattern,
    is_id,
    timed_id,
)
from countersign.core.access.reach import AccountReach, Reach

ERASED_BUYER: Final = "erased buyer"
"""Shown in place of a reference whose buyer is erased."""

REFERENCE: Final = "ref"
BUYER_NAMED: Final = re.compile(
    "|".join(id_pattern(prefix).strip("^$") for prefix in (BUYER, SANDBOX_BUYER))
)
_REFERENCE: Final = re.compile(id_pattern(REFERENCE).strip("^$") + r"(?:\.\d+)?")
_references: Final = buyer_references.c


def refer(connection: Connection, row_id: str, *texts: str) -> list[str]:
    """These texts of a row with its own references in place of the buyers that they name.

    The references are made of the row's random identifier: no two rows that name one buyer have
    the same. A buyer who is already erased gets a meaningless reference.
    """
    named = dict.fromkeys(cbid for text in texts for cbid in BUYER_NAMED.findall(text))
    if not named:
        return [*texts]
    references = {
        cbid: f"{REFERENCE}_{row_id.partition('_')[2]}" + (f".{number}" if number else "")
        for number, cbid in enumerate(named)
    }
    there = connection.execute(select(buyers.c.cbid).where(buyers.c.cbid.in_(named))).scalars()
    meanings = [{"reference": references[cbid], "cbid": cbid} for cbid in there]
    if meanings:
        connection.execute(insert(buyer_references), meanings)
    return [BUYER_NAMED.sub(lambda found: references[found[0]], text) for text in texts]


def named(connection: Connection, rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The texts of these rows with the buyers in place of their references."""
    found = {one for row in rows for text in row for one in _REFERENCE.findall(text)}
    meanings: dict[str, str] = {}
    for chunk in chunks([*found]):
        own = _references.reference.in_(chunk)
        known = select(_references.reference, _references.cbid).where(own)
        meanings |= {row.reference: row.cbid for row in connection.execute(known)}
    return [
        [_REFERENCE.sub(lambda one: meanings.get(one[0], ERASED_BUYER), text) for text in row]
        for row in rows
    ]


def references_of(connection: Connection, cbid: str) -> Sequence[str]:
    """All references to this buyer."""
    return connection.scalars(select(_references.reference).filter_by(cbid=cbid)).all()


_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class AuditAction(StrEnum):
    """What was done."""

    VERIFICATION_SETTINGS_CHANGED = "verification_settings_changed"
    VERIFICATION_SETTINGS_REMOVED = "verification_settings_removed"
    VERIFICATION_PROVIDER_ADDED = "verification_provider_added"
    VERIFICATION_PROVIDER_DROPPED = "verification_provider_dropped"
    BUYER_REVOKED = "buyer_revoked"
    BUYER_REINSTATED = "buyer_reinstated"
    BUYER_BLOCKED = "buyer_blocked"
    BUYER_UNBLOCKED = "buyer_unblocked"
    BUYER_ZIP_ACCEPTED = "buyer_zip_accepted"
    BUYER_REVIEW_DISMISSED = "buyer_review_dismissed"
    BUYER_REVIEW_PROPOSED = "buyer_review_proposed"
    EVIDENCE_SHOWN = "evidence_shown"
    CLEARANCE_OVERRIDDEN = "clearance_overridden"
    CLEARANCE_OVERRIDE_PROPOSED = "clearance_override_proposed"
    CLEARANCE_SETTINGS_CHANGED = "clearance_settings_changed"
    CLEARANCE_KEY_ADDED = "clearance_key_added"
    CLEARANCE_KEY_WITHDRAWN = "clearance_key_withdrawn"
    ACCOUNT_CREATED = "account_created"
    ACCOUNT_RENAMED = "account_renamed"
    ACCOUNT_DISABLED = "account_disabled"
    ACCOUNT_ENABLED = "account_enabled"
    ACCOUNT_CLOSED = "account_closed"
    REVIEWERS_SET = "reviewers_set"
    ACCOUNT_SET = "account_set"
    ACCOUNT_DESCRIBED = "account_described"
    CAPTURE_PROCESS_STATED = "capture_process_stated"
    OPERATOR_DESCRIBED = "operator_described"
    ORIGIN_ADDED = "origin_added"
    ORIGIN_REMOVED = "origin_removed"
    BRAND_CHANGED = "brand_changed"
    KEY_CREATED = "key_created"
    KEY_ROTATED = "key_rotated"
    KEY_REVOKED = "key_revoked"
    KEY_READS = "key_reads"
    ACKNOWLEDGMENTS_EXPORTED = "acknowledgments_exported"
    ACKNOWLEDGMENTS_LISTED = "acknowledgments_listed"
    ACKNOWLEDGMENT_SHOWN = "acknowledgment_shown"
    CERTIFICATION_DRAFTED = "certification_drafted"
    BUNDLE_WRITTEN = "bundle_written"
    DOSSIER_WRITTEN = "dossier_written"
    CERTIFICATE_WRITTEN = "certificate_written"
    ERASED = "erased"
    SUBJECT_EXPORTED = "subject_exported"
    EVIDENCE_END_SET = "evidence_end_set"
    EVIDENCE_ENDED = "evidence_ended"
    HOLD_PLACED = "hold_placed"
    HOLD_RELEASED = "hold_released"
    MATTER_OPENED = "matter_opened"
    MATTER_CLOSED = "matter_closed"
    SEARCHED = "searched"
    NOTICE_PUBLISHED = "notice_published"
    NOTICE_REVIEWED = "notice_reviewed"
    NOTICE_WITHDRAWN = "notice_withdrawn"
    NOTICE_ENJOINED = "notice_enjoined"
    NOTICE_REINSTATED = "notice_reinstated"
    LOG_KEY_ROTATED = "log_key_rotated"
    LOG_CHANGE_PROPOSED = "log_change_proposed"
    LOG_CHANGE_APPROVED = "log_change_approved"
    LOG_APPROVERS_CHANGED = "log_approvers_changed"
    LOG_EPOCH_BEGUN = "log_epoch_begun"
    LOG_RECOVERED = "log_recovered"
    TIME_STAMPS_CHOSEN = "time_stamps_chosen"
    WEBHOOK_ENDPOINT_CREATED = "webhook_endpoint_created"
    WEBHOOK_ENDPOINT_CHANGED = "webhook_endpoint_changed"
    WEBHOOK_ENDPOINT_DELETED = "webhook_endpoint_deleted"
    WEBHOOK_SECRET_ROTATED = "webhook_secret_rotated"  # noqa: S105 - the name of an act
    PERSON_INVITED = "person_invited"
    PERSON_REMOVED = "person_removed"
    PERSON_LINK_MADE = "person_link_made"
    PERSON_CAME_IN = "person_came_in"
    PERSON_SIGNED_IN = "person_signed_in"
    PERSON_SIGNED_OUT = "person_signed_out"
    PERSON_SESSIONS_ENDED = "person_sessions_ended"
    PERSONAL_DATA_SHOWN = "personal_data_shown"
    CALLED = "called"
    VAULT_REWRAPPED = "vault_rewrapped"
    VAULT_ROTATED = "vault_rotated"


class AuditEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One act of an operator."""

    id: str
    at: datetime
    actor: str
    """The actor, as far as known: the user of the operating system, the person (`per_…`), or the
    API key (`key_…`).
    """
    action: AuditAction
    subject: str
    """The account, buyer, record, notice or webhook endpoint; or `log`, `vault`."""
    details: Mapping[str, object]
    """Details without secrets or personal data."""
    owners: tuple[AccountReach, ...] = ()
    """The accounts whose audit gets a new entry, besides the deployment's, which has all; not read
    back."""


def write_audit(connection: Connection, entry: AuditEntry | None) -> None:
    """Write an entry in the transaction of its act; None: the act is not audited."""
    if entry is not None:
        # Nothing erases this row: it names a buyer by an erasable reference.
        written = refer(connection, entry.id, entry.subject, _encode(entry.details).decode())
        row = {name: getattr(entry, name) for name in ("id", "at", "actor", "action")}
        row |= dict(zip(("subject", "details"), written, strict=True))
        connection.execute(insert(audit_log), row)
        if owners := [{"entry_id": entry.id} | asdict(owner) for owner in entry.owners]:
            connection.execute(insert(audit_owners), owners)


def find_audit(connection: Connection, subject: str | None) -> Sequence[AuditEntry]:
    """The entries about one subject or all, oldest first; a buyer who is gone is not named."""
    query = select(audit_log).order_by(audit_log.c.id)
    if subject is not None:
        subjects = [subject, *references_of(connection, subject)]
        query = query.where(audit_log.c.subject.in_(subjects))
    return entries_of(connection, query)


def entries_of(connection: Connection, query: Select[Any]) -> list[AuditEntry]:
    """The entries that a query of the audit log finds; an erased buyer is not named."""
    found = connection.execute(query).all()
    shown = named(connection, [(row.subject, row.details) for row in found])
    return [
        of_row(row, AuditEntry, subject=about, details=_decode(details))
        for row, (about, details) in zip(found, shown, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Audit:
    """Makes audit entries for one actor, in the name of an account or of the deployment."""

    database: Database
    clock: Clock
    entropy: Entropy
    actor: str
    """The person (`per_…`), the key (`key_…`), or the user of the system who runs a command."""
    owners: tuple[AccountReach, ...] = ()
    """The accounts in whose name the actor acts; empty: the deployment."""

    def of(self, actor: str, reach: Reach) -> Audit:
        """The same audit for an actor with this reach."""
        owners = (reach,) if isinstance(reach, AccountReach) else ()
        return replace(self, actor=actor, owners=owners)

    async def note(
        self, action: AuditAction, subject: str, *owners: Reach, **details: object
    ) -> None:
        """Record an act that only reads, or one of several transactions: before it begins.

        An act of one transaction writes its `entry` in that transaction.
        """
        await self.database.write(write_audit, self.entry(action, subject, *owners, **details))

    def entry(
        self, action: AuditAction, subject: str, *owners: Reach, **details: object
    ) -> AuditEntry:
        """An entry with the present time; `details` hold no secret, and nothing personal.

        It is in the audit of `owners`; the deployment has all. Without `owners` it is in the audit
        of the account that is the subject or `place`, in the `mode` of the details or in both;
        otherwise of the account in whose name the actor acts.
        """
        time_ns = self.clock.time_ns()
        whole, mode = str(details.get("place", subject)), details.get("mode")
        about = [AccountReach(whole, one) for one in Mode if mode in {None, one}]
        given = owners or (about if is_id(ACCOUNT, whole) else self.owners)
        return AuditEntry(
            id=timed_id("aud", time_ns, self.entropy(8)),
            at=from_ns(time_ns),
            actor=self.actor,
            action=action,
            subject=subject,
            details=details,
            owners=tuple(one for one in given if isinstance(one, AccountReach)),
        )
