"""Sessions, acknowledgments and clearances are found by the vendor's reference of an order, too.

Nothing that is stored has one. On the embedded database, the triggers that keep blind indexes take
the third along.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011_order_references"
down_revision = "0010_evidence_ends"
branch_labels = None
depends_on = None

RUNS = """
WITH RECURSIVE runs (run) AS (
  SELECT min(run) FROM blind_runs UNION ALL
  SELECT (SELECT min(b.run) FROM blind_runs AS b WHERE b.run > runs.run)
  FROM runs WHERE runs.run IS NOT NULL)
SELECT run FROM runs WHERE run IS NOT NULL
"""
TRIGGERS = (
    """\
CREATE TRIGGER disclosures_are_found AFTER INSERT ON disclosures
WHEN coalesce(NEW.session_index, NEW.cbid_index, NEW.reference_index) IS NOT NULL BEGIN
  INSERT INTO blind_recent VALUES
    (NEW.record_id, NEW.session_index, NEW.cbid_index, NEW.reference_index);
END""",
    f"""\
CREATE TRIGGER disclosures_are_forgotten AFTER DELETE ON disclosures BEGIN
  DELETE FROM blind_recent WHERE record_id = OLD.record_id;
  DELETE FROM blind_runs WHERE run IN ({RUNS})
    AND key IN (OLD.session_index, OLD.cbid_index, OLD.reference_index)
    AND record_id = OLD.record_id;
END""",  # noqa: S608
)


def upgrade() -> None:
    """Add the columns with their indexes; on SQLite, put new triggers in the place of the old."""
    for table in ("disclosures", "blind_recent", "checkout_sessions"):
        op.add_column(table, sa.Column("reference_index", sa.LargeBinary()))
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    for table in ("disclosures", "checkout_sessions") if is_postgresql else ("checkout_sessions",):
        op.execute(
            f"CREATE INDEX ix_{table}_reference_index ON {table} (reference_index)"
            " WHERE reference_index IS NOT NULL"
        )
    if is_postgresql:
        return
    for trigger in ("disclosures_are_found", "disclosures_are_forgotten"):
        op.execute(f"DROP TRIGGER {trigger}")
    for statement in TRIGGERS:
        op.get_bind().exec_driver_sql(statement)
