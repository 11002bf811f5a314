"""The record of a decision on an order; its members are those of spec/evidence-format.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from countersign.clearances.model import Decision, Order, Question
from countersign.evidence.record import (
    CBID_FIELD,
    SESSION_FIELD,
    FactDraft,
    SealedRecord,
    entropy_needed,
    make_facts,
)
from countersign.ids import ACKNOWLEDGMENT, is_id
from countersign.instant import rfc3339, rfc3339_ms
from countersign.log.append_record import SEAL_ENTROPY, seal_disclosures
from countersign.log.record import NewRecord, RecordType, SealedDisclosures
from countersign.vault.vault import SHRED_KEY_BYTES, DataKey

SHIPPING_FIELD: Final = "shipping"
_FIELDS: Final = 3
DECISION_ENTROPY: Final = entropy_needed(_FIELDS) + SEAL_ENTROPY
"""Random bytes that the record of one decision takes."""


class DecisionDraft(NamedTuple):
    """What the record of one decision is written from."""

    key: DataKey
    question: Question
    decision: Decision
    entropy: bytes
    """`DECISION_ENTROPY` of them."""


def decision_records(drafts: Sequence[DecisionDraft]) -> list[NewRecord]:
    """The records; who the buyer is and where the order goes are disclosures, encrypted.

    Made together, for those that share a transaction.
    """
    written = make_facts(
        [
            FactDraft(
                _members(draft.question, draft.decision),
                _personal(draft.question.order),
                draft.entropy[:-SEAL_ENTROPY],
            )
            for draft in drafts
        ]
    )
    return [_record(*pair) for pair in zip(drafts, written, strict=True)]


def _record(draft: DecisionDraft, written: SealedRecord) -> NewRecord:
    question, key = draft.question, draft.key
    id_, sealing = question.clearance_id, draft.entropy[-SEAL_ENTROPY:]
    return NewRecord(
        id=id_,
        account_id=question.account_id,
        mode=question.mode,
        type=RecordType.CLEARANCE,
        notice_id=None,
        at=question.at,
        body=written.body,
        digest=written.digest,
        disclosures=SealedDisclosures(
            payload=seal_disclosures(key, question.account_id, id_, written.disclosures, sealing),
            shred_key=sealing[:SHRED_KEY_BYTES],
            # What is cleared is found by its acknowledgment, which is of the same session.
            session_index=None if draft.decision.cleared else question.session_index,
            cbid_index=question.cbid_index,
        ),
    )


def _members(question: Question, decision: Decision) -> dict[str, Any]:
    order = question.order
    members: dict[str, Any] = {
        "type": RecordType.CLEARANCE.value,
        "id": question.clearance_id,
        "mode": question.mode.value,
        "at": rfc3339_ms(question.at),
        "account": question.account_id,
        "ack_id": order.ack_id if is_id(ACKNOWLEDGMENT, order.ack_id) else None,
        "cleared": decision.cleared,
        "reasons": list(decision.reasons),
        "obligations": [dict(obligation) for obligation in decision.obligations],
        "expires_at": None if decision.expires_at is None else rfc3339(decision.expires_at),
    }
    if question.judged_at != question.at:
        members["test_clock"] = rfc3339_ms(question.judged_at)
    return members


def _personal(order: Order) -> Sequence[tuple[str, object]]:
    shipping: Mapping[str, object] = {
        "zip": order.shipping_zip,
        "address": order.shipping_address,
        "product_class": order.product_class,
    }
    return (
        (CBID_FIELD, order.cbid),
        (SESSION_FIELD, order.session_id),
        (SHIPPING_FIELD, shipping),
    )
