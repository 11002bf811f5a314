"""Four eyes: if an account wants it, two people must decide the same on a waiting buyer.

The first decision is a proposal, which contains a ZIP code only as a keyed hash. A second person
who decides the same makes it final; a different decision is a new proposal.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import Connection, select, update

from countersign.base.db.tables import accounts, buyers
from countersign.base.errors import SecondPersonRequired
from countersign.base.http.schemas import Timestamp
from countersign.base.values import PERSON, is_id
from countersign.core.access.audit import AuditAction, AuditEntry, write_audit

TWO: Final = 2
_TWO_DECIDE: Final = (
    "Two people decide on the buyers of this account, each signed in: in the console, or over the "
    "API. A key or a command is neither of them."
)


class ReviewProposal(Struct, frozen=True, kw_only=True):
    """What the first of two people has decided on a buyer."""

    decision: Annotated[str, Meta(examples=["dismiss"])]
    reason: Annotated[str, Meta(examples=["case 7"])]
    document: Annotated[str | None, Meta(examples=["a utility bill"])]
    by: Annotated[str, Meta(examples=["per_01km9wtz3tfs8v8j2c7n5k9m0c"])]
    """The person (`per_…`): another person has to decide the same."""
    at: Timestamp


class KeptProposal(ReviewProposal, frozen=True, kw_only=True):
    """The same, as it is stored."""

    verification_id: str
    """The attempt that it is about: a newer attempt was not decided on."""
    zip_index: str
    """The keyed hash of the ZIP code to accept, in hex; "" if none is."""


_decode: Final = msgspec.json.Decoder(KeptProposal).decode


def proposal_of(stored: str | None, verification_id: str) -> KeptProposal | None:
    """A person's proposal after this attempt; proposals that keys made in the past do not count."""
    found = None if stored is None else _decode(stored)
    if found is None or found.verification_id != verification_id or not is_id(PERSON, found.by):
        return None
    return found


def needs_two(connection: Connection, account_id: str) -> bool:
    """Whether two people decide on the buyers of this account."""
    query = select(accounts.c.reviewers).where(accounts.c.id == account_id)
    return connection.execute(query).scalar() == TWO


def refuse_alone(connection: Connection, account_id: str) -> SecondPersonRequired | None:
    """Refuse a key or a command where two people decide: neither proves who they are."""
    return SecondPersonRequired(_TWO_DECIDE) if needs_two(connection, account_id) else None


def propose(
    connection: Connection, before: KeptProposal | None, entry: AuditEntry, **decided: str
) -> KeptProposal | SecondPersonRequired | None:
    """The proposal that a decision is; None: the decision is final, and no proposal is left.

    `before` is the stored proposal, read after locking the buyer: of two concurrent decisions one
    is the second. `entry` is the audit entry of the final act, by a person; `decided` has decision,
    verification_id and zip_index.
    """
    details: dict[str, Any] = {**entry.details}
    about = {"reason": details["reason"], "document": details.get("document")}
    made = KeptProposal(by=entry.actor, at=entry.at.replace(microsecond=0), **about, **decided)
    # Two people have to agree on these; each has a reason of their own.
    terms = (made.decision, made.zip_index)
    if before is None or (before.decision, before.zip_index) != terms:
        _put(connection, entry.subject, msgspec.json.encode(made).decode())
        details |= {"decision": made.decision, "verification": made.verification_id}
        noted = {"action": AuditAction.BUYER_REVIEW_PROPOSED, "details": details}
        write_audit(connection, msgspec.structs.replace(entry, **noted))
        return made
    if before.by == made.by:
        return SecondPersonRequired()
    _put(connection, entry.subject, None)
    return None


def _put(connection: Connection, cbid: str, proposal: str | None) -> None:
    connection.execute(update(buyers).where(buyers.c.cbid == cbid).values(proposal=proposal))
