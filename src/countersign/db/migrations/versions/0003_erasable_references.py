"""What names an erased buyer, or lets its ZIP code be guessed, can go with the buyer.

What was erased before is brought to the same state: nothing leads from what stays to the buyer.
"""

import os
import re
from collections.abc import Callable, Iterable

import sqlalchemy as sa
from alembic import op

revision = "0003_erasable_references"
down_revision = "0002_rare_notices"
branch_labels = None
depends_on = None

_CBID = re.compile(r"cbid_(?:test_)?[0-7][0-9a-hjkmnp-tv-z]{25}")
_PAGE = 500

_SCHEMA = """
CREATE TABLE buyer_references (
  reference VARCHAR(40) NOT NULL,
  cbid VARCHAR(40) NOT NULL,
  CONSTRAINT pk_buyer_references PRIMARY KEY (reference)
);
CREATE INDEX ix_buyer_references_cbid ON buyer_references (cbid);
CREATE TABLE waiting_erasures (
  record_id VARCHAR(40) NOT NULL,
  reason VARCHAR(20) NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_waiting_erasures PRIMARY KEY (record_id)
);
ALTER TABLE idempotency_keys ADD COLUMN about VARCHAR(40);
CREATE INDEX ix_idempotency_keys_about ON idempotency_keys (about) WHERE about IS NOT NULL;
CREATE INDEX ix_events_of_buyers ON events (object_id) WHERE substr(type, 1, 6) = 'buyer.'
"""
# Of the responses that are kept for a day, it is not known what they name: each has to be read.
_ERASED_BEFORE = """
UPDATE idempotency_keys SET about = '';
UPDATE events SET object_id = '', reasons = NULL
  WHERE substr(type, 1, 6) = 'buyer.' AND object_id LIKE 'cbid%' AND NOT triggered
  AND NOT EXISTS (SELECT 1 FROM buyers WHERE buyers.cbid = events.object_id);
UPDATE acknowledgment_uses SET cbid = NULL
  WHERE EXISTS (SELECT 1 FROM erasures WHERE erasures.record_id = acknowledgment_uses.ack_id)
"""


def upgrade() -> None:
    """Make the tables and columns, then name buyers by references and overwrite what is left."""
    for statement in (*_SCHEMA.split(";"), *_ERASED_BEFORE.split(";")):
        op.execute(statement)
    _overwrite("acknowledgment_uses", "ack_id", "cbid IS NULL", ("cbid_index", "order_index"))
    _overwrite("checkout_sessions", "id", "content IS NULL", ("session_index",))
    # Not `due` and `done`, which a restore has written.
    _overwrite("deployment", "name", "name LIKE 'erased:%' AND length(value) > 4", ("value",))
    _rename("legal_holds", ("subject", "reason"))
    if op.get_bind().dialect.name == "sqlite":
        _without_trigger(
            "audit_log_no_update", lambda: _rename("audit_log", ("subject", "details"))
        )
        return
    op.execute("ALTER TABLE audit_log DISABLE TRIGGER audit_log_no_change")
    _rename("audit_log", ("subject", "details"))
    op.execute("ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_no_change")


def _without_trigger(name: str, change: Callable[[], None]) -> None:
    query = sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = :name")
    statement = op.get_bind().execute(query, {"name": name}).scalar_one()
    op.execute(f"DROP TRIGGER {name}")
    change()
    op.get_bind().exec_driver_sql(statement)


def _rename(table: str, columns: tuple[str, ...]) -> None:
    """Name each buyer by a reference, which means nothing if the buyer was erased."""
    bind, names = op.get_bind(), ", ".join(columns)
    values = ", ".join(f"{column} = :{column}" for column in columns)
    rows = sa.text(f"SELECT id, {names} FROM {table} WHERE id > :after ORDER BY id LIMIT {_PAGE}")  # noqa: S608
    changed = sa.text(f"UPDATE {table} SET {values} WHERE id = :id")  # noqa: S608
    known = sa.text("SELECT 1 FROM buyers WHERE cbid = :cbid")
    new = sa.text("INSERT INTO buyer_references (reference, cbid) VALUES (:reference, :cbid)")
    for row in _paged(rows):
        found = dict.fromkeys(cbid for text in row[1:] for cbid in _CBID.findall(text))
        texts = list(row[1:])
        for number, cbid in enumerate(found):
            reference = f"ref_{row[0].partition('_')[2]}" + (f".{number}" if number else "")
            if bind.execute(known, {"cbid": cbid}).first() is not None:
                bind.execute(new, {"reference": reference, "cbid": cbid})
            texts = [text.replace(cbid, reference) for text in texts]
        if found:
            bind.execute(changed, {"id": row[0]} | dict(zip(columns, texts, strict=True)))


def _overwrite(table: str, key: str, where: str, columns: tuple[str, ...]) -> None:
    """Put random bytes where there was a keyed hash."""
    bind = op.get_bind()
    page = (
        f"SELECT {key} FROM {table} WHERE {key} > :after AND {where} ORDER BY {key} LIMIT {_PAGE}"  # noqa: S608
    )
    for row in _paged(sa.text(page)):
        for column in columns:
            there = f"{key} = :key AND {column} IS NOT NULL"
            new = sa.text(f"UPDATE {table} SET {column} = :new WHERE {there}")  # noqa: S608
            bind.execute(new, {"new": os.urandom(16), "key": row[0]})


def _paged(rows: sa.TextClause) -> Iterable[sa.Row[*tuple[str, ...]]]:
    after = ""
    while page := op.get_bind().execute(rows, {"after": after}).all():
        yield from page
        after = page[-1][0]
