"""What makes the records of a dossier those of one order, and what the dossier lacks, in words.

A record that nothing shown joins to the others has no place in a dossier: so the files of two
orders cannot be mixed into one that verifies. The rules are those of `verify.py`.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from countersign_evidence.contents import by_the_rules
from countersign_evidence.dossier import TYPES, DossierRecord
from countersign_evidence.errors import EvidenceError
from countersign_evidence.offline import verify as rules


class Joined(NamedTuple):
    """What joins the records, what is missing, and what is odd and no failure, each in words."""

    joins: tuple[str, ...]
    missing: tuple[str, ...]
    remarks: tuple[str, ...]


def check_members(id_: str, record: Mapping[str, Any]) -> None:
    """Check that a record of a dossier has its own file, and what the words about it rest on."""
    with by_the_rules():
        rules.check_members(id_, record)


def check_order(placed: Sequence[tuple[str, int]]) -> None:
    """Check that the records, by type and index, stand in the order of a dossier."""
    places = [(TYPES.index(kind), index) for kind, index in placed]
    if any(before >= after for before, after in pairwise(places)):
        raise EvidenceError("the records are not in the order of a dossier")


def check_joins(records: Sequence[DossierRecord], notice: Mapping[str, Any]) -> Joined:
    """Check that all the records are about one order; `notice` is empty if there is none."""
    placed = [
        rules.Placed(one.id, one.type, dict(one.record), one.digest, dict(one.shown), one.index)
        for one in records
    ]
    with by_the_rules():
        order = rules.Order(placed, notice)
    return Joined(tuple(order.joins), tuple(order.missing), tuple(order.remarks))


def party_digests(record: Mapping[str, Any]) -> list[str | None]:
    """The digests of the records of parties that a record names."""
    one = rules.Placed(record["id"], record["type"], dict(record), "", {}, 0)
    return [digest for _, digest in rules.named_by(one)]
