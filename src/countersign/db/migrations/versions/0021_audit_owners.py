"""The audit belongs to the account in whose name an act was done.

The entries stay as they are: they are chained. Those of before get their account from what they
name; where that says nothing, they are the deployment's.
"""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0021_audit_owners"
down_revision = "0020_holds_have_a_mode"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE audit_owners (
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_audit_owners_mode CHECK (mode IN ('test', 'live')),
  entry_id VARCHAR(40) NOT NULL,
  CONSTRAINT pk_audit_owners PRIMARY KEY (account_id, mode, entry_id)
)
"""
_REFUSE = "SELECT RAISE(ABORT, 'audit_owners is append-only')"
_SQLITE_KEEPS = f"""
CREATE TRIGGER audit_owners_no_update BEFORE UPDATE ON audit_owners BEGIN {_REFUSE}; END

CREATE TRIGGER audit_owners_no_delete BEFORE DELETE ON audit_owners BEGIN {_REFUSE}; END

CREATE TRIGGER audit_owners_no_replace BEFORE INSERT ON audit_owners WHEN \
EXISTS (SELECT 1 FROM audit_owners WHERE account_id = NEW.account_id AND mode = NEW.mode \
AND entry_id = NEW.entry_id) OR \
EXISTS (SELECT 1 FROM audit_owners WHERE rowid = NEW.rowid) BEGIN {_REFUSE}; END
"""  # noqa: S608 - our own names
_POSTGRESQL_KEEPS = """
CREATE FUNCTION audit_owners_append_only() RETURNS trigger LANGUAGE plpgsql AS \
$$ BEGIN RAISE EXCEPTION 'audit_owners is append-only'; END $$

CREATE TRIGGER audit_owners_no_change BEFORE UPDATE OR DELETE ON audit_owners \
FOR EACH ROW EXECUTE FUNCTION audit_owners_append_only()

CREATE TRIGGER audit_owners_no_truncate BEFORE TRUNCATE ON audit_owners \
FOR EACH STATEMENT EXECUTE FUNCTION audit_owners_append_only()

ALTER TABLE audit_owners ENABLE ALWAYS TRIGGER audit_owners_no_change

ALTER TABLE audit_owners ENABLE ALWAYS TRIGGER audit_owners_no_truncate

REVOKE UPDATE, DELETE, TRUNCATE ON audit_owners FROM PUBLIC
"""
_PAGE = sa.text(
    "SELECT id, actor, subject, details FROM audit_log WHERE id > :after ORDER BY id LIMIT 500"
)
# A buyer of the sandbox is one account's. A live one is shared: its row says who asked first, and
# nothing of in whose name someone looked at it.
_OWNED = [
    sa.text(query).bindparams(sa.bindparam("names", expanding=True))
    for query in (
        "SELECT id, account_id, mode FROM records WHERE account_id IS NOT NULL AND id IN :names",
        "SELECT id, account_id, mode FROM api_keys WHERE id IN :names",
        "SELECT id, account_id, mode FROM webhook_endpoints WHERE id IN :names",
        """SELECT reference AS id, account_id, mode FROM buyer_references
        JOIN buyers ON buyers.cbid = buyer_references.cbid
        WHERE mode = 'test' AND reference IN :names""",
    )
]
_NEW = sa.text(
    "INSERT INTO audit_owners (account_id, mode, entry_id) VALUES (:account, :mode, :id)"
)
_MODES = ("test", "live")


def upgrade() -> None:
    """Make the table, and give the entries of before their owners."""
    bind, after = op.get_bind(), ""
    keeps = _POSTGRESQL_KEEPS if bind.dialect.name == "postgresql" else _SQLITE_KEEPS
    for statement in (_TABLE, *keeps.strip().split("\n\n")):
        op.execute(statement)
    while page := bind.execute(_PAGE, {"after": after}).all():
        new = [
            {"account": account, "mode": mode, "id": id_}
            for id_, owners in _owners(bind, page)
            for account, mode in owners
        ]
        if new:
            bind.execute(_NEW, new)
        after = page[-1].id


def _owners(
    bind: sa.Connection, page: Sequence[sa.Row[Any]]
) -> list[tuple[str, list[tuple[str, str]]]]:
    told = [(row, json.loads(row.details)) for row in page]
    texts = [
        (row.actor, row.subject, details.get("verification"), details.get("key_id"))
        for row, details in told
    ]
    names = sorted({name for named in texts for name in named if isinstance(name, str)})
    known = {
        row.id: (row.account_id, row.mode)
        for query in _OWNED
        for row in bind.execute(query, {"names": names})
    }
    return [(row.id, _owners_of(row, details, known)) for row, details in told]


def _owners_of(
    row: sa.Row[Any], details: dict[str, Any], known: dict[str, tuple[str, str]]
) -> list[tuple[str, str]]:
    account, mode = details.get("account_id"), details.get("mode")
    if isinstance(account, str) and mode in _MODES:
        return [(account, mode)]  # the call of a person says for whom it was
    for name in (row.actor, row.subject, details.get("verification"), details.get("key_id")):
        if isinstance(name, str) and name in known:
            return [known[name]]
    # Of an account as a whole, in both modes; but for what says the mode.
    for whole in (row.subject, details.get("place")):
        if isinstance(whole, str) and whole.startswith("acct_"):
            return [(whole, one) for one in ((mode,) if mode in _MODES else _MODES)]
    return []
