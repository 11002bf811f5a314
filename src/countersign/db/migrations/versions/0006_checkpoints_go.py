"""Of the checkpoints, those that prove nothing that a later one does not prove may go after a day.

The trigger that keeps the table as it is allows to delete one that is a day older than the newest
of its log, and that neither a witness nor a time-stamp authority has confirmed. It keeps the last
of a log, and those around the times when a key began to sign or retired: they say for which sizes a
key counts.
"""

from alembic import op

revision = "0006_checkpoints_go"
down_revision = "0005_events_together"
branch_labels = None
depends_on = None

_STAYS = """
{at} > -86400000
  + (SELECT at FROM {in_}checkpoints WHERE log_id = {log_id} ORDER BY size DESC LIMIT 1)
OR EXISTS (SELECT 1 FROM {in_}anchors WHERE log_id = {log_id} AND size = {size})
OR EXISTS (SELECT 1 FROM {in_}log_keys AS k, {in_}checkpoints AS n
  WHERE k.log_id = {log_id} AND n.log_id = {log_id}
  AND n.size = (SELECT min(size) FROM {in_}checkpoints WHERE log_id = {log_id} AND size > {size})
  AND (k.created_at BETWEEN {at} - 120000 AND n.at + 120000
  OR k.retires_at BETWEEN {at} - 120000 AND n.at + 120000))
"""
_OLD = _STAYS.format(in_="", at="OLD.at", log_id="OLD.log_id", size="OLD.size")
_NAMED = _STAYS.format(in_="%1$I.", log_id="$1", size="$2", at="$3")
SQLITE = (
    "DROP TRIGGER checkpoints_no_delete",
    f"""\
CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints WHEN {_OLD}\
BEGIN SELECT RAISE(ABORT, 'checkpoints is append-only'); END""",
)
# The schema is named, and nothing is looked up elsewhere: a role that sets its search_path, or
# makes a temporary table called `anchors`, changes nothing.
POSTGRESQL = (
    f"""\
CREATE OR REPLACE FUNCTION checkpoints_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE stays boolean;
BEGIN
  IF TG_OP = 'DELETE' THEN
    EXECUTE format('SELECT {_NAMED}', TG_TABLE_SCHEMA)
      INTO stays USING OLD.log_id, OLD.size, OLD.at;
    IF NOT stays THEN RETURN OLD; END IF;
  END IF;
  RAISE EXCEPTION 'checkpoints is append-only';
END $$""",
)


def upgrade() -> None:
    """Put the condition into the trigger."""
    for statement in POSTGRESQL if op.get_bind().dialect.name == "postgresql" else SQLITE:
        op.execute(statement)
