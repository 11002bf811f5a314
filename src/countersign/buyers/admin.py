"""What operators do with buyers: look at them and at the evidence, revoke, reinstate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from countersign.access.audit import AuditAction, AuditEntry, find_audit, write_audit
from countersign.buyers.admin_sql import (
    StoredEvidence,
    evidence_of_buyer,
    find_buyer,
    was_erased,
)
from countersign.buyers.erased import erased_name
from countersign.buyers.evaluate_session import override
from countersign.buyers.model import (
    Buyer,
    BuyerStatus,
    after_revocation,
    reinstated,
    status_at,
)
from countersign.buyers.room import Buyers
from countersign.buyers.session_evidence import (
    EVIDENCE_TABLE,
    Override,
    SessionRequest,
    result_in,
)
from countersign.buyers.sql import write_buyer, write_status_event
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.identity.model import Outcome, Source
from countersign.identity.postal_code import is_zip
from countersign.instant import from_ns

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


async def show(room: Buyers, cbid: str) -> tuple[Buyer, BuyerStatus]:
    """A buyer, and its status now.

    Raises:
        UnknownSubject: there is no such buyer (any more).
    """
    buyer = await room.database.read(find_buyer, cbid)
    if buyer is None:
        if await _was_erased(room, cbid):
            raise UnknownSubject(f"The buyer {cbid} was erased completely.")
        raise _unknown(cbid)
    clock = await room.test_clocks.of(buyer.account_id, buyer.mode)
    return buyer, status_at(buyer, clock.at(from_ns(room.clock.time_ns())))


async def revoke(room: Buyers, cbid: str, reason: str) -> Buyer:
    """Revoke a buyer and its documents, until it is reinstated.

    Raises:
        UnknownSubject: there is no such buyer.
        InvalidArgument: no reason is given.
    """
    audit = room.audit.entry(AuditAction.BUYER_REVOKED, cbid, reason=_checked(reason))
    return await room.database.write(_revoke, cbid, audit)


async def reinstate(room: Buyers, cbid: str, reason: str) -> Buyer:
    """Undo a revocation.

    Raises:
        UnknownSubject: there is no such buyer.
        InvalidArgument: it is not revoked, or no reason is given.
    """
    audit = room.audit.entry(AuditAction.BUYER_REINSTATED, cbid, reason=_checked(reason))
    return await room.database.write(_reinstate, cbid, audit)


def _revoke(connection: Connection, cbid: str, audit: AuditEntry) -> Buyer | UnknownSubject:
    before = find_buyer(connection, cbid, to_change=True)
    if before is None:
        return _unknown(cbid)
    return _write_change(connection, before, after_revocation(before), audit)


def _reinstate(
    connection: Connection, cbid: str, audit: AuditEntry
) -> Buyer | UnknownSubject | InvalidArgument:
    before = find_buyer(connection, cbid, to_change=True)
    if before is None:
        return _unknown(cbid)
    if before.status is not BuyerStatus.REVOKED:
        return InvalidArgument(f"The buyer {before.cbid} is not revoked.")
    return _write_change(connection, before, reinstated(before), audit)


def _write_change(connection: Connection, before: Buyer, after: Buyer, audit: AuditEntry) -> Buyer:
    write_buyer(connection, before, after)
    if after != before:
        write_status_event(connection, after, audit.at)
    write_audit(connection, replace(audit, subject=before.cbid))
    return after


async def accept_zip(room: Buyers, cbid: str, zip_: str, *, document: str, reason: str) -> Buyer:
    """Accept another ZIP code for a buyer whom a provider approved, on sight of a document.

    All other rules are applied again, to what the provider said then. It counts for accounts
    whose rules name `operator` among the sources of an address.

    Raises:
        UnknownSubject: there is no such buyer (any more).
        InvalidArgument: it is revoked, no provider approved it, the evidence is gone, the
            account's rules forbid it, or a rule other than that of the ZIP code fails.
    """
    if not is_zip(zip_):
        raise InvalidArgument("A ZIP code must have five digits, or be ZIP+4.")
    document, reason = _checked(document, "--document"), _checked(reason)
    buyer, _ = await show(room, cbid)
    if buyer.status is BuyerStatus.REVOKED:
        raise InvalidArgument(f"The buyer {buyer.cbid} is revoked.")
    basis, content = await _approved(room, buyer)
    integration = await room.providers.of(basis.account_id)
    place = (content["provider"], content["base_url"])
    if integration is None or place != (
        integration.settings.provider,
        integration.settings.base_url,
    ):
        raise InvalidArgument("The account no longer uses the provider of that verification.")
    if Source.OPERATOR not in integration.rules.zip_sources:
        msg = (
            f"The rules of {basis.account_id} do not accept an operator's confirmation of "
            "an address. To accept it, repeat the account's rules with one more source: "
            "countersign accounts verification set … --zip-source operator"
        )
        raise InvalidArgument(msg)
    details = {"reason": reason, "document": document, "verification": basis.verification_id}
    accepted = Override(
        verification_id=basis.verification_id,
        document=document,
        reason=reason,
        audit=room.audit.entry(AuditAction.BUYER_ZIP_ACCEPTED, buyer.cbid, **details),
    )
    request = msgspec.convert(content["request"] | {"shipping_zip": zip_}, SessionRequest)
    await override(room, integration, request, result_in(content, zip_), accepted)
    return (await show(room, cbid))[0]


async def evidence(
    room: Buyers, cbid: str, reason: str
) -> AsyncIterator[tuple[StoredEvidence, dict[str, Any] | None]]:
    """A buyer's verifications, oldest first, with all that is known of the person.

    The content is None where it was erased. The audit entry is written first.

    Raises:
        UnknownSubject: there is no such buyer (any more), or nothing but that it was revoked.
        InvalidArgument: no reason is given.
        WrongKeyEncryptionKey: it does not open.
    """
    buyer, _ = await show(room, cbid)
    entry = room.audit.entry(AuditAction.EVIDENCE_SHOWN, buyer.cbid, reason=_checked(reason))
    await room.database.write(write_audit, entry)
    found = await room.database.scan(evidence_of_buyer, buyer.cbid)
    if not found and await _was_erased(room, buyer.cbid):
        raise UnknownSubject(f"The buyer {buyer.cbid} was erased; only the revocation remains.")
    for stored in found:
        yield stored, None if stored.erased_at else await _opened(room, stored)


async def audit_log(room: Buyers, subject: str | None) -> Sequence[AuditEntry]:
    """What operators did with a subject, or with all, oldest first.

    Of a buyer that was joined to another, also what was done under that identifier.
    """
    found = await room.database.scan(find_audit, subject)
    buyer = None if subject is None else await room.database.read(find_buyer, subject)
    if buyer is None or buyer.cbid == subject:
        return found
    later = await room.database.scan(find_audit, buyer.cbid)
    return sorted((*found, *later), key=lambda entry: entry.id)


async def _approved(room: Buyers, buyer: Buyer) -> tuple[StoredEvidence, dict[str, Any]]:
    """The newest verification in which a provider approved the person, opened."""
    found = await room.database.scan(evidence_of_buyer, buyer.cbid)
    for stored in reversed(found):
        if stored.erased_at is None:
            content = await _opened(room, stored)
            if content["read"]["outcome"] == Outcome.VERIFIED and not content.get("override"):
                return stored, content
    raise InvalidArgument(
        f"No provider has approved {buyer.cbid}, or the evidence of the approval was "
        "erased: the buyer needs an identity session."
    )


async def _opened(room: Buyers, stored: StoredEvidence) -> dict[str, Any]:
    content = await room.vault.open(
        stored.payload,
        shred_key=stored.shred_key,
        table=EVIDENCE_TABLE,
        column="payload",
        account=stored.account_id,
        row_id=stored.verification_id,
    )
    return _decode(content)


def _unknown(cbid: str) -> UnknownSubject:
    return UnknownSubject(f"The buyer {cbid!r} does not exist.")


async def _was_erased(room: Buyers, cbid: str) -> bool:
    return await room.database.read(was_erased, erased_name(room.secret, cbid))


def _checked(text: str, option: str = "--reason") -> str:
    if not text.strip():
        raise InvalidArgument(f"Give a reason: {option} TEXT.")
    return text.strip()
