"""The audit belongs to the account in whose name an act was done.

The entries stay as they are: they are chained. Those of before get their account from what they
name; where that says nothing, they are the deployment's.
"""

import json
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
SQLITE = (
    f"CREATE TRIGGER audit_owners_no_update BEFORE UPDATE ON audit_owners BEGIN {_REFUSE}; END",
    f"CREATE TRIGGER audit_owners_no_delete BEFORE DELETE ON audit_owners BEGIN {_REFUSE}; END",
    f"""CREATE TRIGGER audit_owners_no_replace BEFORE INSERT ON audit_owners WHEN
EXISTS (SELECT 1 FROM audit_owners WHERE rowid = NEW.rowid) OR EXISTS (SELECT 1 FROM audit_owners
WHERE account_id = NEW.account_id AND mode = NEW.mode AND entry_id = NEW.entry_id)
BEGIN {_REFUSE}; END""",  # noqa: S608 - our own names
)
POSTGRESQL = (
    """CREATE FUNCTION audit_owners_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'audit_owners is append-only'; END $$""",
    """CREATE TRIGGER audit_owners_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_owners
FOR EACH STATEMENT EXECUTE FUNCTION audit_owners_append_only()""",
    "ALTER TABLE audit_owners ENABLE ALWAYS TRIGGER audit_owners_no_change",
    "REVOKE UPDATE, DELETE, TRUNCATE ON audit_owners FROM PUBLIC",
)
_PAGE = sa.text(
    "SELECT id, actor, subject, details FROM audit_log WHERE id > :after ORDER BY id LIMIT 500"
)
_NEW = sa.text(
    "INSERT INTO audit_owners (account_id, mode, entry_id) VALUES (:account, :mode, :id)"
)
# A buyer of the sandbox is one account's. A live one is shared: its row says who asked first, and
# nothing of in whose name someone looked at it.
_OWNED = (
    "SELECT id, account_id, mode FROM records",
    "SELECT id, account_id, mode FROM api_keys",
    "SELECT id, account_id, mode FROM webhook_endpoints",
    """SELECT r.reference AS id, b.account_id, b.mode FROM buyer_references r
    JOIN buyers b ON b.cbid = r.cbid AND b.mode = 'test'""",
)
_Owner = tuple[str, str]


def upgrade() -> None:
    """Make the table, and give the entries of before their owners."""
    bind, after = op.get_bind(), ""
    keeps = POSTGRESQL if bind.dialect.name == "postgresql" else SQLITE
    for statement in (_TABLE, *keeps):
        op.execute(statement)
    while page := bind.execute(_PAGE, {"after": after}).all():
        entries = [(row, json.loads(row.details)) for row in page]
        known = _known(bind, [name for one in entries for name in _names(*one)])
        owners = [(row.id, owner) for row, said in entries for owner in _owners(row, said, known)]
        if new := [{"account": who, "mode": mode, "id": id_} for id_, (who, mode) in owners]:
            bind.execute(_NEW, new)
        after = page[-1].id


def _known(bind: sa.Connection, names: list[str]) -> dict[str, _Owner]:
    found: dict[str, _Owner] = {}
    for owned in _OWNED:
        query = sa.text(f"SELECT id, account_id, mode FROM ({owned}) o WHERE id IN :names")  # noqa: S608 - our own names
        rows = bind.execute(query.bindparams(sa.bindparam("names", names, expanding=True)))
        found |= {row.id: (row.account_id, row.mode) for row in rows if row.account_id}
    return found


def _names(row: sa.Row[Any], said: dict[str, Any]) -> list[str]:
    """What an entry names, beginning with the key that acted."""
    return [str(n) for n in (row.actor, row.subject, said.get("verification"), said.get("key_id"))]


def _owners(row: sa.Row[Any], said: dict[str, Any], known: dict[str, _Owner]) -> list[_Owner]:
    modes = [said["mode"]] if said.get("mode") else ["test", "live"]
    if said.get("account_id") and len(modes) == 1:
        return [(said["account_id"], *modes)]  # the call of a person, which says for whom it was
    named = [known[name] for name in _names(row, said) if name in known]
    whole = str(said.get("place", row.subject))
    return named[:1] or [(whole, mode) for mode in modes if whole.startswith("acct_")]
