"""What makes the records of a dossier those of one order, and what the dossier lacks, in words.

A record that nothing shown joins to the others has no place in a dossier: so the files of two
orders cannot be mixed into one that verifies.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec

from countersign.evidence.dossier import (
    ACCOUNT,
    CAPTURE_PROCESS,
    CLEARANCE,
    ERASURE,
    FULFILMENT,
    NOTICE_EVENT,
    OPERATOR,
    TYPES,
    DossierRecord,
)
from countersign.evidence.errors import EvidenceError
from countersign.evidence.process import PROCESS, Time
from countersign.evidence.record import ACKNOWLEDGMENT, CBID_FIELD, SESSION_FIELD, VERIFICATION

_PREFIXES: Final = {ACKNOWLEDGMENT: "ack", VERIFICATION: "ver", CLEARANCE: "clr", FULFILMENT: "ful"}
_CHECK: Final = "verification"
"""The member of a clearance's disclosures, and of `process`, that names an identity check."""


class _Of(msgspec.Struct):
    """What every record but an acknowledgment has; those of parties are checked elsewhere."""

    at: Time


class _NoticeEvent(_Of):
    event: str
    notice_id: str
    notice_version: str
    notice_digest: str


class _Verification(_Of):
    account: str
    provider: str
    simulated: bool


class _Clearance(_Of):
    account: str
    ack_id: str | None
    cleared: bool
    reasons: list[str]
    expires_at: str | None


class _Fulfilment(_Of):
    account: str
    clearance_id: str
    adult_signature_obtained: bool | None
    shipped_at: str | None
    delivered_at: str | None


class _Erasure(_Of):
    account: str
    erased: list[str]
    reason: str


_MEMBERS: Final[Mapping[str, type[_Of]]] = {
    OPERATOR: _Of,
    ACCOUNT: _Of,
    CAPTURE_PROCESS: _Of,
    NOTICE_EVENT: _NoticeEvent,
    VERIFICATION: _Verification,
    CLEARANCE: _Clearance,
    FULFILMENT: _Fulfilment,
    ERASURE: _Erasure,
}
"""What the words about a record rest on; an acknowledgment has more, which is checked elsewhere."""


class Joined(NamedTuple):
    """What joins the records, and what is missing, each in words."""

    joins: tuple[str, ...]
    missing: tuple[str, ...]


def check_members(id_: str, record: Mapping[str, Any]) -> None:
    """Check that a record of a dossier has its own file, and what the words about it rest on."""
    kind = record["type"]
    if kind not in TYPES:
        raise EvidenceError(f"a dossier has no record of the type {kind}")
    if record["id"] != id_ or id_[:3] != _PREFIXES.get(kind, "rec"):
        raise EvidenceError(f"{id_} is not the identifier of the record in this file")
    if kind in _MEMBERS:
        try:
            msgspec.convert(record, _MEMBERS[kind])
        except msgspec.ValidationError as error:
            raise EvidenceError(f"{id_} lacks members that every {kind} has: {error}") from error


def check_order(placed: Sequence[tuple[str, int]]) -> None:
    """Check that the records, by type and index, stand in the order of a dossier."""
    places = [(TYPES.index(kind), index) for kind, index in placed]
    if any(before >= after for before, after in pairwise(places)):
        raise EvidenceError("the records are not in the order of a dossier")


def check_joins(records: Sequence[DossierRecord]) -> Joined:
    """Check that all the records are about one order."""
    order = _Order(records)
    return Joined(tuple(order.joins()), tuple(order.missing()))


class _Order:
    """The records of a dossier, by their roles."""

    def __init__(self, records: Sequence[DossierRecord]) -> None:
        acknowledgments = [record for record in records if record.type == ACKNOWLEDGMENT]
        clearances = [record for record in records if record.type == CLEARANCE]
        if len(acknowledgments) > 1 or len(clearances) > 1:
            raise EvidenceError("a dossier has one acknowledgment and one clearance at most")
        self._acknowledgment = next(iter(acknowledgments), None)
        self._clearance = next(iter(clearances), None)
        self._order = [*acknowledgments, *clearances]
        if not self._order:
            raise EvidenceError("a dossier has an acknowledgment or a clearance")
        self._records = records
        self._account = self._order[0].record["account"]
        self._names = {
            (field, record.record[field]) for record in records for field in _named(record.record)
        }

    def joins(self) -> Iterator[str]:
        """Of each record by what it is joined; EvidenceError if one is not."""
        for record in self._records:
            if record.record.get("account", self._account) != self._account:
                raise EvidenceError(f"{record.id} is of another account")
        acknowledgment, clearance = self._acknowledgment, self._clearance
        if acknowledgment and clearance:
            if clearance.record["ack_id"] != acknowledgment.id:
                raise EvidenceError(f"{clearance.id} is not about {acknowledgment.id}")
            yield f"{clearance.id} names {acknowledgment.id} as its acknowledgment"
            yield from self._same(acknowledgment, clearance)
        for record in self._records:
            if record not in self._order:
                yield f"{record.id} ({record.type}) {self._by(record)}"

    def _same(self, first: DossierRecord, second: DossierRecord) -> Iterator[str]:
        """What is said of the values that both records show."""
        for field in (CBID_FIELD, SESSION_FIELD):
            one, other = first.shown.get(field), second.shown.get(field)
            if not isinstance(one, str) or not isinstance(other, str):
                continue
            if one == other:
                yield f"{first.id} and {second.id} have the same {field}"
            elif field == SESSION_FIELD and second.record["cleared"]:
                raise EvidenceError(f"{second.id} is cleared for another {field}")
            else:  # a buyer can have several identifiers, and an order can be refused for it
                yield f"{first.id} and {second.id} have a DIFFERENT {field}"

    def _by(self, record: DossierRecord) -> str:
        """By what a record is joined to the others."""
        kind, members, clearance = record.type, record.record, self._clearance
        notice = self._acknowledgment and self._acknowledgment.record["notice_digest"]
        if kind == VERIFICATION:
            return self._checked(record)
        if kind == FULFILMENT and clearance and members["clearance_id"] == clearance.id:
            return f"names {clearance.id} as its clearance"
        if kind == NOTICE_EVENT and notice is not None and members["notice_digest"] == notice:
            return f"is about the notice that was acknowledged, {members['event']}"
        if kind == ERASURE:
            erased = [one.id for one in self._records if one.id in members["erased"]]
            if erased:
                return f"says that personal fields of {', '.join(erased)} were deleted"
        field = {OPERATOR: "operator_record", ACCOUNT: "account_record"}.get(kind, kind)
        if (field, record.digest) in self._names:
            return f"is named, by its digest, as {field}"
        raise EvidenceError(f"nothing joins {record.id} ({kind}) to the other records")

    def _checked(self, record: DossierRecord) -> str:
        """By what an identity check is joined: by its identifier, else as one of the buyer."""
        acknowledgment, clearance = self._acknowledgment, self._clearance
        if record.id == self._relied_on():
            assert clearance is not None  # noqa: S101 - whose disclosure names it
            return f"is named by {clearance.id} as the check that it relied on"
        process = acknowledgment.shown.get(PROCESS) if acknowledgment else None
        if acknowledgment and process and process["verification"] == record.id:
            return f"is named by {acknowledgment.id} as the check in the same session"
        cbid = record.shown.get(CBID_FIELD)
        # A buyer has checks for other orders too: never does a dossier have more than one of them.
        only = [one.id for one in self._records if one.type == VERIFICATION] == [record.id]
        if only and isinstance(cbid, str) and (clearance is None or clearance.record["v"] == 1):
            for one in self._order:
                if one.shown.get(CBID_FIELD) == cbid:
                    return f"is a check of the buyer {CBID_FIELD} of {one.id}"
        raise EvidenceError(f"nothing joins {record.id} ({record.type}) to the other records")

    def _relied_on(self) -> Any:  # noqa: ANN401 - whatever is disclosed
        return self._clearance.shown.get(_CHECK) if self._clearance else None

    def missing(self) -> Iterator[str]:
        """What an order can have, and is not here."""
        kinds = {record.type for record in self._records}
        clearance = self._clearance
        if self._acknowledgment is None and clearance is not None:
            named = clearance.record["ack_id"]
            yield f"the acknowledgment {named}" if named else "an acknowledgment: none was named"
        if clearance is None:
            yield "a clearance"
        if VERIFICATION not in kinds:
            yield f"an identity check{self._why_no_check()}"
        if clearance and clearance.record["cleared"] and FULFILMENT not in kinds:
            yield "a report of fulfilment"
        if self._acknowledgment and NOTICE_EVENT not in kinds:
            yield "events of the notice, such as its review"
        yield from self._parties()
        for record in self._records:
            hidden = len(set(record.record["_sd"])) - len(record.shown)
            if hidden:
                erased = any(
                    record.id in e.record["erased"] for e in self._records if e.type == ERASURE
                )
                why = "erased" if erased and not record.shown else "withheld or erased"
                yield f"personal fields of {record.id}: {hidden} {why}"

    def _why_no_check(self) -> str:
        clearance = self._clearance
        if clearance is None or clearance.record["v"] == 1:
            return ", or what joins it is withheld or erased"
        if _CHECK not in clearance.shown:
            return ": which one the clearance relied on is withheld or erased"
        named = self._relied_on()
        return f": {named}" if named else ": the clearance relied on none of this account"

    def _parties(self) -> Iterator[str]:
        """What is not known of operator and vendor, and of how the vendor captures."""
        here = {record.digest for record in self._records}
        for record in self._records:
            for field in _named(record.record):
                named = record.record[field]
                if named is None:
                    yield f"{field} of {record.id}: there was none"
                elif named not in here:
                    yield f"{field} of {record.id}: {named}"
            if record in self._order and record.record["v"] == 1:
                yield f"operator and account of {record.id}: a record of version 1 names none"


def _named(record: Mapping[str, Any]) -> Sequence[str]:
    """The members by which a record names those of the parties."""
    if record["v"] == 1:
        return ()
    of_vendor = record["type"] == ACKNOWLEDGMENT and record["capture"] == "vendor_api"
    return ("operator_record", "account_record", *((CAPTURE_PROCESS,) if of_vendor else ()))


def party_digests(record: Mapping[str, Any]) -> list[str | None]:
    """The digests of the records of parties that a record names."""
    return [record[field] for field in _named(record)]
