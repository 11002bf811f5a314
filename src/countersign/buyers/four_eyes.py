"""Four eyes: where an account wants it, two people decide the same on a buyer who waits.

What the first one decides is a proposal, which has of a ZIP code nothing but a keyed hash. A
second one who decides the same makes it final; one who decides otherwise makes another proposal.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import Connection, or_, select, update

from countersign.access.audit import AuditAction, AuditEntry, write_audit
from countersign.db.tables import accounts, audit_log, buyers
from countersign.errors import SecondPersonRequired
from countersign.http.schemas import Timestamp
from countersign.ids import is_id
from countersign.people.model import PERSON

TWO: Final = 2
_TWO_DECIDE: Final = (
    "Two people decide on the buyers of this account: in the console, or over the API."
)
_MADE_KEYS: Final = {AuditAction.KEY_CREATED: "key_id", AuditAction.KEY_ROTATED: "successor"}
"""By which entries of the audit there is a key, and what they call it."""


class ReviewProposal(Struct, frozen=True, kw_only=True):
    """What the first of two people has decided on a buyer."""

    decision: Annotated[str, Meta(examples=["dismiss"])]
    reason: Annotated[str, Meta(examples=["case 7"])]
    document: Annotated[str | None, Meta(examples=["a utility bill"])]
    by: Annotated[
        str,
        Meta(
            description="The person (`per_…`) or the key (`key_…`): someone else has to decide the "
            "same.",
            examples=["per_01km9wtz3tfs8v8j2c7n5k9m0c"],
        ),
    ]
    at: Timestamp


class KeptProposal(ReviewProposal, frozen=True, kw_only=True):
    """The same, as it is stored."""

    verification_id: str
    """The attempt that it is about: a newer one is not what was decided on."""
    zip_index: str
    """The keyed hash of the ZIP code to accept, in hex; "" if none is."""

    @property
    def shown(self) -> ReviewProposal:
        """What a second person is shown: not the ZIP code, which that person has to see too."""
        return msgspec.convert(self, ReviewProposal, from_attributes=True)


_decode: Final = msgspec.json.Decoder(KeptProposal).decode


def proposal_of(stored: str | None, verification_id: str) -> KeptProposal | None:
    """What is proposed after this attempt."""
    found = None if stored is None else _decode(stored)
    return found if found is not None and found.verification_id == verification_id else None


def needs_two(connection: Connection, account_id: str) -> bool:
    """Whether two people decide on the buyers of this account."""
    query = select(accounts.c.reviewers).where(accounts.c.id == account_id)
    return connection.execute(query).scalar() == TWO


def refuse_alone(connection: Connection, account_id: str) -> SecondPersonRequired | None:
    """Refuse the command of the machine where two people decide: it does not say who they are."""
    return SecondPersonRequired(_TWO_DECIDE) if needs_two(connection, account_id) else None


def propose(
    connection: Connection,
    before: KeptProposal | None,
    entry: AuditEntry,
    account_id: str,
    **decided: str,
) -> KeptProposal | SecondPersonRequired | None:
    """The proposal that a decision is; None: it is final, and no proposal is left.

    `before` is what was proposed, read after the row of the buyer was locked: of two who decide at
    once one is the second. `entry` is that of the final act, `account_id` that of the attempt;
    `decided` has decision, verification_id and zip_index.
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
    if len({_behind(connection, account_id, by) for by in (before.by, made.by)}) < TWO:
        return SecondPersonRequired()
    _put(connection, entry.subject, None)
    return None


def _behind(connection: Connection, account_id: str, actor: str) -> str:
    """The person who decides: by the audit, a key that a person has made is of that person."""
    own, key = audit_log.c, f'"{actor}"'
    made = [
        (own.action == action.value) & own.details.contains(f'"{name}":{key}', autoescape=True)
        for action, name in _MADE_KEYS.items()
    ]
    maker = select(own.actor).where(own.subject == account_id, or_(*made))
    found = connection.execute(maker).scalars().first()
    return found if found is not None and is_id(PERSON, found) else actor


def _put(connection: Connection, cbid: str, proposal: str | None) -> None:
    connection.execute(update(buyers).where(buyers.c.cbid == cbid).values(proposal=proposal))
