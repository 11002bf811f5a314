"""Remaining rows name a buyer by a random reference, whose meaning is erased with the buyer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, insert, select

from countersign.base.db.rows import chunks
from countersign.base.db.tables import buyer_references, buyers
from countersign.base.ids import BUYER, SANDBOX_BUYER, id_pattern

ERASED_BUYER: Final = "erased buyer"
"""Shown in place of a reference whose buyer is erased."""

_PREFIX: Final = "ref"
_CBID: Final = re.compile(
    "|".join(id_pattern(prefix).strip("^$") for prefix in (BUYER, SANDBOX_BUYER))
)
_REFERENCE: Final = re.compile(id_pattern(_PREFIX).strip("^$") + r"(?:\.\d+)?")
_r: Final = buyer_references.c


def refer(connection: Connection, row_id: str, *texts: str) -> list[str]:
    """These texts of a row with its own references in place of the buyers that they name.

    The references are made of the row's random identifier: no two rows that name one buyer have
    the same. A buyer who is erased already gets one without a meaning.
    """
    named = dict.fromkeys(cbid for text in texts for cbid in _CBID.findall(text))
    if not named:
        return [*texts]
    references = {
        cbid: f"{_PREFIX}_{row_id.partition('_')[2]}" + (f".{number}" if number else "")
        for number, cbid in enumerate(named)
    }
    there = connection.execute(select(buyers.c.cbid).where(buyers.c.cbid.in_(named))).scalars()
    meanings = [{"reference": references[cbid], "cbid": cbid} for cbid in there]
    if meanings:
        connection.execute(insert(buyer_references), meanings)
    return [_CBID.sub(lambda found: references[found[0]], text) for text in texts]


def named(connection: Connection, rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The texts of these rows with the buyers in place of their references."""
    found = {one for row in rows for text in row for one in _REFERENCE.findall(text)}
    meanings: dict[str, str] = {}
    for chunk in chunks([*found]):
        known = select(_r.reference, _r.cbid).where(_r.reference.in_(chunk))
        meanings |= {row.reference: row.cbid for row in connection.execute(known)}
    return [
        [_REFERENCE.sub(lambda one: meanings.get(one[0], ERASED_BUYER), text) for text in row]
        for row in rows
    ]


def references_of(connection: Connection, cbid: str) -> Sequence[str]:
    """All references to this buyer."""
    return connection.execute(select(_r.reference).where(_r.cbid == cbid)).scalars().all()
