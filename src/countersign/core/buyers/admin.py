"""Acts of operators on buyers: show them and their evidence, revoke, reinstate."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select

from countersign.base.db.schema import value_of
from countersign.base.db.statements import rows
from countersign.base.db.tables import (
    buyer_blocks,
    buyers,
    erasures,
    records,
    shred_keys,
    verification_evidence,
    verifications,
)
from countersign.base.errors import CountersignError, InvalidArgument, UnknownSubject
from countersign.base.http.schemas import view
from countersign.base.values import Reason
from countersign.core.access.audit import AuditAction, AuditEntry, find_audit, write_audit
from countersign.core.access.idempotency import Remember
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach, owner_of
from countersign.core.buyers.evaluate_session import First, override
from countersign.core.buyers.four_eyes import needs_two, refuse_alone
from countersign.core.buyers.model import (
    Buyer,
    BuyerStatus,
    after_revocation,
    reinstated,
    status_at,
)
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import is_zip
from countersign.core.buyers.schemas import BuyerEvidence, CheckEvidence, VerifyResult
from countersign.core.buyers.session_evidence import (
    SessionRequest,
    evidence_place,
    result_in,
)
from countersign.core.buyers.sql import buyers_by_cbid, erased_name, write_change
from countersign.identity.model import FactSource, Finding

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class StoredEvidence(Struct, frozen=True, kw_only=True):
    """The evidence of one verification, as stored: sealed, or erased."""

    verification_id: str
    account_id: str
    provider: str
    status: BuyerStatus
    at: datetime
    payload: bytes | None
    """None if it was erased; the same for the shred key."""
    response: bytes | None
    """None if it was cut."""
    shred_key: bytes | None
    erased_at: datetime | None


async def show(room: Buyers, cbid: str) -> tuple[Buyer, BuyerStatus]:
    """A buyer, and its status now.

    Raises UnknownSubject if there is no such buyer (any more).
    """
    buyer = await room.access.database.read(_find_buyer, cbid)
    if buyer is None:
        if await _was_erased(room, cbid):
            raise UnknownSubject(f"The buyer {cbid} was erased completely.")
        raise _unknown(cbid)
    now = await room.access.test_clocks.now(buyer.account_id, buyer.mode)
    return buyer, status_at(buyer, now)


def revoke(connection: Connection, room: Buyers, cbid: str, reason: str) -> Buyer:
    """Revoke a buyer and its documents, until it is reinstated.

    Raises UnknownSubject if there is no such buyer, and InvalidArgument if no reason is given.
    """
    return _change(connection, room, cbid, AuditAction.BUYER_REVOKED, reason)


def reinstate(connection: Connection, room: Buyers, cbid: str, reason: str) -> Buyer:
    """Undo a revocation.

    Raises UnknownSubject if there is no such buyer, and InvalidArgument if it is not revoked,
    or no reason is given.
    """
    return _change(connection, room, cbid, AuditAction.BUYER_REINSTATED, reason)


def set_block(
    connection: Connection, room: Buyers, reach: Reach, cbid: str, reason: str, *, blocked: bool
) -> Buyer:
    """Refuse the buyer's orders at one account, or clear them again.

    Clearances of a blocked one have `refused_by_vendor`. The status stays as it is, and other
    accounts cannot see it. A no-op where it is so already.

    Raises UnknownSubject if there is no such buyer in this mode, and InvalidArgument if no reason
    is given.
    """
    action = AuditAction.BUYER_BLOCKED if blocked else AuditAction.BUYER_UNBLOCKED
    audit = room.access.audit.entry(action, cbid, reason=checked(reason))
    account_id, mode = owner_of(reach)
    buyer = _find_buyer(connection, cbid)
    # None: the caller acts for the deployment, which has no blocks.
    if buyer is None or buyer.mode is not mode:
        raise _unknown(cbid)
    own = buyer_blocks.c.cbid == buyer.cbid
    connection.execute(delete(buyer_blocks).where(reach.rows(buyer_blocks), own))
    if blocked:
        row = {"account_id": account_id, "mode": mode, "cbid": buyer.cbid, "at": audit.at}
        connection.execute(insert(buyer_blocks), row)
    write_audit(connection, replace(audit, subject=buyer.cbid))
    return buyer


def _change(
    connection: Connection, room: Buyers, cbid: str, action: AuditAction, reason: str
) -> Buyer:
    audit = room.access.audit.entry(action, cbid, reason=checked(reason))
    before = _find_buyer(connection, cbid, to_change=True)
    if before is None:
        raise _unknown(cbid)
    if action is AuditAction.BUYER_REVOKED:
        after = after_revocation(before)
    elif before.status is BuyerStatus.REVOKED:
        after = reinstated(before)
    else:
        raise InvalidArgument(f"The buyer {before.cbid} is not revoked.")
    write_change(connection, before, after, audit.at)
    write_audit(connection, replace(audit, subject=before.cbid))
    return after


async def accept_zip(room: Buyers, cbid: str, zip_: str, *, document: str, reason: str) -> Buyer:
    """Accept another ZIP code for an approved buyer, after seeing a document.

    All other rules are applied again, to the provider's response at the time. It counts for
    accounts whose rules name `operator` among the sources of an address.

    Raises UnknownSubject if there is no such buyer (any more), and InvalidArgument if it is
    revoked, no provider approved it, the evidence is gone, the account's rules forbid it, or a rule
    other than that of the ZIP code fails.
    """
    if not is_zip(zip_):
        raise InvalidArgument("A ZIP code must have five digits, or be ZIP+4.")
    details = {"reason": checked(reason), "document": checked(document, "document")}
    audit = room.access.audit.entry(AuditAction.BUYER_ZIP_ACCEPTED, cbid, **details)
    return (await show(room, (await accept_zip_of(room, DEPLOYMENT, zip_, audit)).cbid))[0]


async def accept_zip_of(
    room: Buyers,
    reach: Reach,
    zip_: str,
    audit: AuditEntry,
    entry: Remember[bytes] = None,
    *,
    first: First | None = None,
) -> VerifyResult:
    """Accept another ZIP code for the buyer of this audit entry, as `accept_zip`.

    In the reach of an account, its reviewer accepts it: only the provider's responses to this
    account count, and the ZIP code counts for this account alone. `first` says whether it is a
    proposal only. Raises as `accept_zip`, and SecondPersonRequired where two people decide.
    """
    buyer, _ = await show(room, audit.subject)
    if buyer.status is BuyerStatus.REVOKED:
        raise InvalidArgument(f"The buyer {buyer.cbid} is revoked.")
    read = await room.access.database.scan(_evidence, reach, buyer.cbid)
    basis, content = await _approved(room, buyer, read)
    place = (content["provider"], content["base_url"])
    for integration in await room.providers.all_of(basis.account_id, buyer.mode):
        if (integration.settings.provider, integration.settings.base_url) == place:
            break
    else:
        raise InvalidArgument("The account no longer uses the provider of that verification.")
    if FactSource.OPERATOR not in integration.rules.zip_sources:
        raise InvalidArgument(
            f"The rules of {basis.account_id} do not accept an operator's confirmation of "
            "an address. To accept it, add operator to the sources of a ZIP code in its rules."
        )
    accepted = replace(
        audit,
        subject=buyer.cbid,
        details={**audit.details, "verification": basis.verification_id},
        # In the audit of the account whose attempt it is, even if the operator decides.
        owners=(AccountReach(basis.account_id, buyer.mode),),
    )
    request = msgspec.convert(content["request"] | {"shipping_zip": zip_}, SessionRequest)
    result, own = result_in(content, zip_), isinstance(reach, AccountReach)
    asked_by = audit.owners[0].account_id if audit.owners else basis.account_id

    def still(connection: Connection) -> VerifyResult | CountersignError | None:
        refused = first(connection) if first else None
        # The approval may belong to another account, which requires two people.
        if refused is None and not (first and needs_two(connection, asked_by)):
            refused = refuse_alone(connection, basis.account_id)
        # It was erased, or a later response withdrew it, since it was read.
        if refused is None and _evidence(connection, reach, buyer.cbid) != read:
            gone = _find_buyer(connection, buyer.cbid) is None
            raise _unknown(buyer.cbid) if gone else _unapproved(buyer.cbid)
        return refused

    return await override(
        room, integration, request, result, accepted, still, entry, for_account_only=own
    )


async def evidence(room: Buyers, reach: Reach, cbid: str, reason: str) -> BuyerEvidence:
    """A buyer's verifications in reach, oldest first, with all that is known of the person.

    The content is None where it was erased. The audit entry is written first.

    Raises:
        UnknownSubject: there is no such buyer in reach (any more), or only its revocation is left.
        InvalidArgument: no reason is given.
        WrongKeyEncryptionKey: it does not open.
    """
    named = cbid
    if reach is DEPLOYMENT:
        cbid = (await show(room, cbid))[0].cbid
    elif not await room.access.database.read(_has_check, reach, cbid):
        raise _unknown(cbid)
    entry = room.access.audit.entry(AuditAction.EVIDENCE_SHOWN, cbid, reason=checked(reason))
    await room.access.database.write(write_audit, entry)
    found = await room.access.database.scan(_evidence, reach, cbid)
    if not found and reach is DEPLOYMENT and await _was_erased(room, cbid):
        raise UnknownSubject(f"The buyer {cbid} was erased; only the revocation remains.")
    checks = [view(CheckEvidence, one, content=_shown(await _opened(room, one))) for one in found]
    return BuyerEvidence(cbid=named, checks=checks)


def _has_check(connection: Connection, reach: Reach, cbid: str) -> bool:
    own = select(verifications.c.id).where(reach.rows(verifications), _checks_of(cbid))
    return connection.execute(own.limit(1)).first() is not None


def _checks_of(cbid: str) -> ColumnElement[bool]:
    """The verifications of a buyer, also under the identifier of the one it was joined to."""
    joined = select(buyers.c.same_as).where(buyers.c.cbid == cbid).scalar_subquery()
    return or_(verifications.c.cbid == cbid, verifications.c.cbid == joined)


def _shown(content: dict[str, Any] | None) -> dict[str, Any] | None:
    """The content of evidence, with the provider's responses as text, too."""
    return content and content | {"answer": readable(content["answer"])}


def readable(response: dict[str, Any] | None) -> dict[str, Any] | None:
    if response is None or "body" not in response:
        return response  # none, or its facts alone
    text = b64decode(response["body"]).decode("utf-8", "replace")
    further = [readable(more) for more in response["further"]]
    return response | {"text": text, "further": further}


async def audit_log(room: Buyers, subject: str | None) -> Sequence[AuditEntry]:
    """The acts of operators on a subject, or on all, oldest first.

    For a buyer joined to another, also the acts under that identifier.
    """
    found = await room.access.database.scan(find_audit, subject)
    buyer = None if subject is None else await room.access.database.read(_find_buyer, subject)
    if buyer is None or buyer.cbid == subject:
        return found
    later = await room.access.database.scan(find_audit, buyer.cbid)
    return sorted((*found, *later), key=lambda entry: entry.id)


async def _approved(
    room: Buyers, buyer: Buyer, read: Sequence[StoredEvidence]
) -> tuple[StoredEvidence, dict[str, Any]]:
    """The newest of these verifications where a provider approved the person, opened."""
    withdrawn = set()
    for stored in reversed(read):
        content = await _opened(room, stored)
        if not content:
            continue
        session_id = content["request"]["session_id"]
        if Reason.VERIFICATION_WITHDRAWN in content["decision"]["reasons"]:
            withdrawn.add(session_id)
        if (
            content["read"]["outcome"] == Finding.VERIFIED
            and not content.get("override")
            and session_id not in withdrawn
        ):
            return stored, content
    raise _unapproved(buyer.cbid)


def _unapproved(cbid: str) -> InvalidArgument:
    return InvalidArgument(
        f"No provider has approved {cbid}, or the evidence of the approval was erased: the buyer "
        "needs an identity session."
    )


async def _opened(room: Buyers, stored: StoredEvidence) -> dict[str, Any] | None:
    if stored.payload is None or stored.shred_key is None:
        return None
    place = partial(evidence_place, stored.account_id, stored.verification_id)
    opened = partial(room.vault.open, shred_key=stored.shred_key)
    facts = _decode(await opened(stored.payload, **place()))
    if stored.response is None:
        return facts
    return facts | {"answer": _decode(await opened(stored.response, **place("response")))}


def _unknown(cbid: str) -> UnknownSubject:
    return UnknownSubject(f"The buyer {cbid!r} does not exist.")


async def _was_erased(room: Buyers, cbid: str) -> bool:
    name = erased_name(room.access.secret, cbid, DEPLOYMENT)
    return await room.access.database.read(value_of, name) is not None


def checked(text: str, what: str = "reason") -> str:
    """The text that an operator gave. Raises InvalidArgument if it is blank."""
    if not text.strip():
        raise InvalidArgument(f"The {what} must not be blank.")
    return text.strip()


def _find_buyer(connection: Connection, cbid: str, *, to_change: bool = False) -> Buyer | None:
    """A buyer of any mode and account; after a merge, the buyer it was merged into."""
    buyer = buyers_by_cbid(connection, [cbid], to_change=to_change, follow=True).get(cbid)
    return buyer if buyer and buyer.same_as is None else None


def _evidence(connection: Connection, reach: Reach, cbid: str) -> list[StoredEvidence]:
    """The evidence of a buyer's verifications in reach, oldest first; no content where erased."""
    query = (
        select(
            verifications.c.id.label("verification_id"),
            verifications.c.account_id,
            verifications.c.provider,
            verifications.c.status,
            verifications.c.at,
            *(verification_evidence.c.payload, verification_evidence.c.response),
            shred_keys.c.key.label("shred_key"),
            erasures.c.at.label("erased_at"),
        )
        .join(records, records.c.id == verifications.c.id)
        .outerjoin(verification_evidence, verification_evidence.c.record_id == verifications.c.id)
        .outerjoin(shred_keys, shred_keys.c.record_id == verifications.c.id)
        .outerjoin(erasures, erasures.c.record_id == verifications.c.id)
        .where(
            reach.rows(verifications),
            _checks_of(cbid),
            # Simulated verifications have no evidence, and never had any.
            verifications.c.session_index.is_not(None),
            or_(
                erasures.c.at.is_not(None),
                and_(verification_evidence.c.payload.is_not(None), shred_keys.c.key.is_not(None)),
            ),
        )
        .order_by(verifications.c.id)
    )
    return rows(connection, query, StoredEvidence)
