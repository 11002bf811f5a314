"""On the embedded database, blind indexes are merged in sorted runs.

Each new row of `disclosures` put two random keys into two indexes, and so dirtied two pages of its
own. Its keys now wait in `blind_recent`, in the order of records; what has come together there is
moved to `blind_runs` in the order of keys. The database itself keeps both as `disclosures` is: a
row that is deleted takes its keys along, wherever they are.

PostgreSQL keeps its indexes, and has these tables empty.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008_blind_runs"
down_revision = "0007_accounts_end"
branch_labels = None
depends_on = None

_TABLES = {
    "sqlite": """
CREATE TABLE blind_recent (
  record_id VARCHAR(40) NOT NULL,
  session_index BLOB,
  cbid_index BLOB,
  CONSTRAINT pk_blind_recent PRIMARY KEY (record_id)
)
 WITHOUT ROWID;
CREATE TABLE blind_runs (
  run INTEGER NOT NULL,
  "key" BLOB NOT NULL,
  record_id VARCHAR(40) NOT NULL,
  CONSTRAINT pk_blind_runs PRIMARY KEY (run, "key", record_id)
)
 WITHOUT ROWID
""",
    "postgresql": """
CREATE TABLE blind_recent (
  record_id VARCHAR(40) NOT NULL,
  session_index BYTEA,
  cbid_index BYTEA,
  CONSTRAINT pk_blind_recent PRIMARY KEY (record_id)
);
CREATE TABLE blind_runs (
  run INTEGER NOT NULL,
  "key" BYTEA NOT NULL,
  record_id VARCHAR(40) NOT NULL,
  CONSTRAINT pk_blind_runs PRIMARY KEY (run, "key", record_id)
)
""",
}
# From each run to the next, which is one look into the primary key: they are few.
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
WHEN coalesce(NEW.session_index, NEW.cbid_index) IS NOT NULL BEGIN
  INSERT INTO blind_recent VALUES (NEW.record_id, NEW.session_index, NEW.cbid_index);
END""",
    f"""\
CREATE TRIGGER disclosures_are_forgotten AFTER DELETE ON disclosures BEGIN
  DELETE FROM blind_recent WHERE record_id = OLD.record_id;
  DELETE FROM blind_runs WHERE run IN ({RUNS})
    AND key IN (OLD.session_index, OLD.cbid_index) AND record_id = OLD.record_id;
END""",  # noqa: S608
)
_ROWS = 65_536
# The numbers between are for what comes to the last of them, see `log/blind_runs.py`.
_STEP = 64
_RUN = sa.text(
    """
INSERT OR IGNORE INTO blind_runs SELECT :run, key, record_id FROM (
  SELECT session_index AS key, record_id FROM disclosures WHERE rowid BETWEEN :first AND :last
  UNION ALL
  SELECT cbid_index, record_id FROM disclosures WHERE rowid BETWEEN :first AND :last
) WHERE key IS NOT NULL ORDER BY key, record_id
"""
)


def upgrade() -> None:
    """Make the tables; on SQLite, sort what there is into runs in place of the indexes."""
    bind = op.get_bind()
    for statement in _TABLES[bind.dialect.name].split(";"):
        op.execute(statement)
    if bind.dialect.name == "postgresql":
        return
    end = bind.execute(sa.text("SELECT coalesce(max(rowid), 0) FROM disclosures")).scalar_one()
    for number, first in enumerate(range(1, end + 1, _ROWS)):
        bind.execute(_RUN, {"run": number * _STEP, "first": first, "last": first + _ROWS - 1})
    for column in ("session_index", "cbid_index"):
        op.execute(f"DROP INDEX ix_disclosures_{column}")
    for statement in TRIGGERS:
        bind.exec_driver_sql(statement)
