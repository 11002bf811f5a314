"""Servers on one PostgreSQL lease shares of each limit.

Unlogged: a share that was lost in a crash is missed by no one, and no commit waits for a
standby. The embedded database has one server, and keeps the table empty.
"""

from alembic import op

revision = "0009_rate_shares"
down_revision = "0008_blind_runs"
branch_labels = None
depends_on = None

_TABLE = {
    "sqlite": """
CREATE TABLE rate_shares (
  name BLOB NOT NULL,
  empty_at BIGINT NOT NULL,
  granted INTEGER NOT NULL,
  CONSTRAINT pk_rate_shares PRIMARY KEY (name)
)
""",
    "postgresql": """
CREATE UNLOGGED TABLE rate_shares (
  name BYTEA NOT NULL,
  empty_at BIGINT NOT NULL,
  granted INTEGER NOT NULL,
  CONSTRAINT pk_rate_shares PRIMARY KEY (name)
)
""",
}


def upgrade() -> None:
    """Make the table."""
    op.execute(_TABLE[op.get_bind().dialect.name])
