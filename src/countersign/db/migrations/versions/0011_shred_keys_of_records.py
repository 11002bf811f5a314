"""The shred key of a record goes only with its erasure, whichever role asks for it."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# The schema is named, and nothing is looked up elsewhere: a role that sets its search_path, or
# makes a temporary table called `erasures`, changes nothing.
_FUNCTION = """
CREATE FUNCTION shred_keys_of_records() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE kept boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM %1$I.records WHERE id = $1)'
    ' AND NOT EXISTS (SELECT FROM %1$I.erasures WHERE record_id = $1)', TG_TABLE_SCHEMA)
    INTO kept USING OLD.record_id;
  IF kept THEN RAISE EXCEPTION 'the shred key of a record goes only with its erasure'; END IF;
  RETURN OLD;
END $$
"""


def upgrade() -> None:
    """Make the trigger. The embedded database has no roles to keep apart."""
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(_FUNCTION)
    op.execute(
        "CREATE TRIGGER shred_keys_of_records BEFORE DELETE ON shred_keys"
        " FOR EACH ROW EXECUTE FUNCTION shred_keys_of_records()"
    )
    op.execute("ALTER TABLE shred_keys ENABLE ALWAYS TRIGGER shred_keys_of_records")
