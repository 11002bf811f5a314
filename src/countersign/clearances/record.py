"""The record of a decision on an order; its members are those of spec/evidence-format.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from countersign.clearances.model import ClearanceResult, NewClearance, Order
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
from countersign.log.record import NewRecord, RecordType
from countersign.vault.vault import DataKey

_SHIPPING_FIELD: Final = "shipping"
_FIELDS: Final = 3
RECORD_ENTROPY: Final = entropy_needed(_FIELDS) + SEAL_ENTROPY
"""Random bytes that the record of one decision takes."""


class RecordDraft(NamedTuple):
    """What the record of one decision is written from."""

    key: DataKey
    new: NewClearance
    result: ClearanceResult
    entropy: bytes
    """`RECORD_ENTROPY` of them."""


def clearance_records(drafts: Sequence[RecordDraft]) -> list[NewRecord]:
    """The records; who the buyer is and where the order goes are disclosures, encrypted.

    Made together, for those that share a transaction.
    """
    written = make_facts(
        [
            FactDraft(
                _members(draft.new, draft.result),
                _personal(draft.new.order),
                draft.entropy[:-SEAL_ENTROPY],
            )
            for draft in drafts
        ]
    )
    return [_record(*pair) for pair in zip(drafts, written, strict=True)]


def _record(draft: RecordDraft, written: SealedRecord) -> NewRecord:
    new, id_ = draft.new, draft.new.clearance_id
    return NewRecord(
        id=id_,
        account_id=new.account_id,
        mode=new.mode,
        type=RecordType.CLEARANCE,
        notice_id=None,
        at=new.at,
        body=written.body,
        digest=written.digest,
        disclosures=seal_disclosures(
            draft.key,
            id_,
            written.disclosures,
            draft.entropy[-SEAL_ENTROPY:],
            account_id=new.account_id,
            # What is cleared is found by its acknowledgment, which is of the same session.
            session_index=None if draft.result.cleared else new.session_index,
            cbid_index=new.cbid_index,
        ),
    )


def _members(new: NewClearance, result: ClearanceResult) -> dict[str, Any]:
    ack_id = new.order.ack_id
    members: dict[str, Any] = {
        "type": RecordType.CLEARANCE.value,
        "id": new.clearance_id,
        "mode": new.mode.value,
        "at": rfc3339_ms(new.at),
        "account": new.account_id,
        "ack_id": ack_id if is_id(ACKNOWLEDGMENT, ack_id) else None,
        "cleared": result.cleared,
        "reasons": list(result.reasons),
        "obligations": [dict(obligation) for obligation in result.obligations],
        "expires_at": None if result.expires_at is None else rfc3339(result.expires_at),
    }
    if new.clock_at != new.at:
        members["test_clock"] = rfc3339_ms(new.clock_at)
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
        (_SHIPPING_FIELD, shipping),
    )


def order_of(ack_id: str | None, personal: Mapping[str, Any]) -> Order:
    """The order that a record is about, from its disclosures."""
    shipping = personal[_SHIPPING_FIELD]
    return Order(
        ack_id=ack_id or "",
        cbid=personal[CBID_FIELD],
        session_id=personal[SESSION_FIELD],
        shipping_zip=shipping["zip"],
        product_class=shipping["product_class"],
        shipping_address=shipping["address"],
    )
