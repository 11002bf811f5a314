"""A vendor can refuse the orders of a buyer, whatever the buyer's status: a table of its own."""

from alembic import op

revision = "0023_buyer_blocks"
down_revision = "0022_key_makers"
branch_labels = None
depends_on = None

_MADE = """
CREATE TABLE buyer_blocks (
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_buyer_blocks_mode CHECK (mode IN ('test', 'live')),
  cbid VARCHAR(40) NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_buyer_blocks PRIMARY KEY (account_id, mode, cbid),
  CONSTRAINT fk_buyer_blocks_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)

CREATE INDEX ix_buyer_blocks_cbid ON buyer_blocks (cbid)
"""


def upgrade() -> None:
    """Make the table with its index."""
    for statement in _MADE.strip().split("\n\n"):
        op.execute(statement)
