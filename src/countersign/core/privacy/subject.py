"""All stored data of one buyer, as the tables declare it: see `Personal` in `db.tables`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    RowMapping,
    String,
    or_,
    select,
)

from countersign.base.db.tables import OWNER, PERSONAL_INFO, Personal, disclosures, metadata
from countersign.core.access.reach import DEPLOYMENT, Reach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.log.blind_runs import found_by
from countersign.core.privacy.erase_sql import find_verifications
from countersign.core.privacy.person_sql import cbid_indexes, find_person


def personal_of(
    connection: Connection, secret: DeploymentSecret, reach: Reach, cbid: str
) -> Iterator[tuple[str, RowMapping]]:
    """Every row in reach with personal columns of this buyer: its table, and those columns, sealed.

    The shared data of a buyer is in the deployment's reach alone.
    """
    person = find_person(connection, secret, cbid, reach)
    checks = find_verifications(connection, person.cbids, reach)
    names = [*person.cbids, *person.references, *(check.record_id for check in checks)]

    def leads(column: Column[Any]) -> ColumnElement[bool]:
        if type(column.type) is String:
            return column.in_(names)
        own = [*cbid_indexes(connection, secret, person.cbids, reach, column)]
        is_listed = column.table is disclosures
        return found_by(connection, column, *own) if is_listed else column.in_(own)

    for table in metadata.sorted_tables:
        kept, owner = [c for c in table.c if PERSONAL_INFO in c.info], table.info[OWNER]
        # Identifiers, and keyed hashes with a column of their own.
        kinds = [
            (c, c.info.get(PERSONAL_INFO, Personal("person")).fields)
            for c in {*kept, *table.primary_key}
        ]
        ways = [c for c, fields in kinds if type(c.type) is (LargeBinary if fields else String)]
        if kept and ways and (reach == DEPLOYMENT or not owner.is_shared):
            within = [reach.rows(table)] if owner.account and owner.mode else []
            found = select(*kept).where(or_(*map(leads, ways)), *within)
            yield from ((table.name, row) for row in connection.execute(found).mappings())
