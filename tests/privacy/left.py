"""The remains in a database: every value, and the keyed hashes of identifiers."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple, get_args

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

from countersign.base.db.tables import (
    OWNER,
    PERSONAL_INFO,
    Field,
    Personal,
    accounts,
    disclosures,
    idempotency_keys,
    metadata,
)
from countersign.core.access.reach import DEPLOYMENT, Reach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers.zips import proved_zip_index
from countersign.core.log.blind_runs import found_by
from countersign.core.privacy.erase_sql import find_verifications
from countersign.core.privacy.person_sql import cbid_indexes, find_person
from countersign.identity.model import FactSource
from countersign.operate import bootstrap
from countersign_evidence.canonical import canonical_json
from tests.http.backstage import Operator


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


class Value(NamedTuple):
    """One value, and its place."""

    table: str
    column: str
    row: str
    data: bytes


def values(connection: Connection, secret: DeploymentSecret) -> Iterator[Value]:
    """Every value of every table; values that the secret alone opens are opened."""
    for table in metadata.sorted_tables:
        for row in connection.execute(select(table)).mappings():
            name = str(next(iter(row.values())))
            for column, value in row.items():
                if value is not None:
                    data = (
                        bytes(value)
                        if isinstance(value, bytes | memoryview)
                        else str(value).encode()
                    )
                    yield Value(table.name, column, name, data)
            if table is idempotency_keys:
                answer = secret.open_answer(bytes(row["response"]), bytes(row["slot"]))
                yield Value(table.name, "response, opened", name, answer)


def everything(operator: Operator) -> tuple[list[Value], DeploymentSecret, list[str]]:
    """All values, the secret, and the accounts."""

    async def work(opened: bootstrap.Deployment) -> DeploymentSecret:
        return opened.access.secret

    secret = operator.act(work)
    with operator.transaction() as connection:
        found = [*values(connection, secret)]
        return found, secret, [*connection.execute(select(accounts.c.id)).scalars()]


def namespaces(operator: Operator) -> list[str]:
    """Within which the live sessions of the providers have their keyed hashes."""
    settings = operator.rows("SELECT provider, base_url FROM verification_settings")
    return [f"{row['provider']}\x00{row['base_url'] or ''}" for row in settings]


def forms(identifier: str) -> list[bytes]:
    """How an identifier could stand in a value."""
    data = identifier.encode()
    found = [data, data.upper(), data.hex().encode(), data.hex().upper().encode()]
    found.append(identifier.encode("utf-16-le"))
    for shift in range(3):
        encoded = b64encode(b"\x00" * shift + data)
        # Without the characters that depend on the text before and after.
        found.append(encoded[(shift * 8 + 5) // 6 : len(encoded) - 4])
    return [*found, *(form.replace(b"+", b"-").replace(b"/", b"_") for form in found)]


def naming(found: Sequence[Value], identifiers: Sequence[str]) -> set[tuple[str, str, str]]:
    """The columns that name any of these identifiers, in whatever form."""
    wanted = [(one, form) for one in identifiers for form in forms(one)]
    return {
        (value.table, value.column, one)
        for value in found
        for one, form in wanted
        if form in value.data
    }


def keyed(
    found: Sequence[Value], secret: DeploymentSecret, scopes: Sequence[str], names: Sequence[str]
) -> set[tuple[str, str]]:
    """The columns with a keyed hash of any of these, under any field."""
    hashes = {
        secret.blind_index(scope, field, name, more)
        for scope, field, name, more in product(scopes, get_args(Field), names, ("", "_live"))
    }
    return _having(found, hashes)


def guessed_zips(
    found: Sequence[Value],
    *,
    secret: DeploymentSecret,
    zips: Sequence[str],
    account_ids: Sequence[str],
    cbids: Sequence[str],
    orders: Sequence[Sequence[Any]],
) -> set[tuple[str, str]]:
    """The columns from which one of these ZIP codes can be found by trying, with the keys in hand.

    `zips`: all ZIP codes of the test; trying the other 99,900 would find nothing more.
    `orders`: acknowledgment, session, class and address of each.
    """
    hashes = set[bytes]()
    for zip_ in zips:
        hashes |= {
            secret.blind_index(scope, field, zip_)
            for scope, field in product([*account_ids, *cbids], get_args(Field))
        }
        hashes |= {
            bytes.fromhex(
                proved_zip_index(
                    secret, cbid, zip_, source, country_assumed=assumed, account_id=account_id
                )
            )
            for cbid, source, assumed, account_id in product(
                cbids, FactSource, (False, True), (None, *account_ids)
            )
        }
        for account_id, (ack_id, session_id, class_, address) in product(account_ids, orders):
            whole = canonical_json([ack_id, session_id, zip_, class_, address]).decode()
            hashes.add(secret.blind_index(account_id, "order", whole))
    return _having(found, hashes)


def _having(found: Sequence[Value], hashes: set[bytes]) -> set[tuple[str, str]]:
    size = 16
    return {
        (value.table, value.column)
        for value in found
        for piece in _pieces(value.data, size)
        if piece in hashes
    }


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Possible keyed hashes in a value: its bytes, or hexadecimal digits in its text."""
    if len(data) == size:
        yield data
    text = data.decode("ascii", "replace")
    word = ""
    for character in text + " ":
        if character in "0123456789abcdef":
            word += character
            continue
        if len(word) == 2 * size:
            yield bytes.fromhex(word)
        word = ""
