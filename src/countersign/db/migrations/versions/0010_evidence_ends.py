"""An account may set when the evidence of its orders ends.

The trigger that keeps `records` as it is allows to delete a row that is noted as ended and has no
disclosures any more. Servers may not note that: it takes the owner of the tables.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010_evidence_ends"
down_revision = "0009_rate_shares"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE ended_records (
  record_id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_ended_records_mode CHECK (mode IN ('test', 'live')),
  at BIGINT NOT NULL,
  CONSTRAINT pk_ended_records PRIMARY KEY (record_id)
)
"""
_REFUSE = "SELECT RAISE(ABORT, 'ended_records is append-only')"
_SQLITE_KEEPS = f"""
CREATE TRIGGER ended_records_no_update BEFORE UPDATE ON ended_records BEGIN {_REFUSE}; END

CREATE TRIGGER ended_records_no_delete BEFORE DELETE ON ended_records BEGIN {_REFUSE}; END

CREATE TRIGGER ended_records_no_replace BEFORE INSERT ON ended_records WHEN \
EXISTS (SELECT 1 FROM ended_records WHERE record_id = NEW.record_id) OR \
EXISTS (SELECT 1 FROM ended_records WHERE rowid = NEW.rowid) BEGIN {_REFUSE}; END
"""  # noqa: S608 - our own names
_POSTGRESQL_KEEPS = """
CREATE FUNCTION ended_records_append_only() RETURNS trigger LANGUAGE plpgsql AS \
$$ BEGIN RAISE EXCEPTION 'ended_records is append-only'; END $$

CREATE TRIGGER ended_records_no_change BEFORE UPDATE OR DELETE ON ended_records \
FOR EACH ROW EXECUTE FUNCTION ended_records_append_only()

CREATE TRIGGER ended_records_no_truncate BEFORE TRUNCATE ON ended_records \
FOR EACH STATEMENT EXECUTE FUNCTION ended_records_append_only()

ALTER TABLE ended_records ENABLE ALWAYS TRIGGER ended_records_no_change

ALTER TABLE ended_records ENABLE ALWAYS TRIGGER ended_records_no_truncate

REVOKE UPDATE, DELETE, TRUNCATE ON ended_records FROM PUBLIC
"""
_STAYS = """
NOT EXISTS (SELECT 1 FROM {in_}ended_records WHERE record_id = {id})
OR EXISTS (SELECT 1 FROM {in_}disclosures WHERE record_id = {id})
"""
SQLITE = (
    "DROP TRIGGER records_no_delete",
    f"""\
CREATE TRIGGER records_no_delete BEFORE DELETE ON records WHEN {_STAYS.format(in_="", id="OLD.id")}\
BEGIN SELECT RAISE(ABORT, 'records is append-only'); END""",
)
# The schema is named, and nothing is looked up elsewhere: a role that sets its search_path, or
# makes a temporary table called `ended_records`, changes nothing.
POSTGRESQL = (
    f"""\
CREATE OR REPLACE FUNCTION records_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE stays boolean;
BEGIN
  IF TG_OP = 'DELETE' THEN
    EXECUTE format('SELECT {_STAYS.format(in_="%1$I.", id="$1")}', TG_TABLE_SCHEMA)
      INTO stays USING OLD.id;
    IF NOT stays THEN RETURN OLD; END IF;
  END IF;
  RAISE EXCEPTION 'records is append-only';
END $$""",
)


def upgrade() -> None:
    """Make the table and the column, and put the condition into the trigger."""
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    op.add_column("accounts", sa.Column("evidence_years", sa.Integer()))
    keeps = _POSTGRESQL_KEEPS if is_postgresql else _SQLITE_KEEPS
    ends = POSTGRESQL if is_postgresql else SQLITE
    for statement in (_TABLE, *keeps.strip().split("\n\n"), *ends):
        op.execute(statement)
