"""Buyers may be sent the link of their copy by e-mail: what waits for the mail server."""

from alembic import op

revision = "0016_copy_mails"
down_revision = "0015_matters"
branch_labels = None
depends_on = None

_MADE = """
CREATE TABLE copy_mails (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_copy_mails_mode CHECK (mode IN ('test', 'live')),
  checkout_session_id VARCHAR(40) NOT NULL,
  created_at BIGINT NOT NULL,
  locale VARCHAR(8) NOT NULL,
  address BLOB,
  address_index BLOB,
  due_at BIGINT,
  attempts INTEGER NOT NULL,
  unsure INTEGER NOT NULL,
  outcome VARCHAR(10),
  CONSTRAINT pk_copy_mails PRIMARY KEY (id),
  CONSTRAINT fk_copy_mails_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)

CREATE INDEX ix_copy_mails_account_id_mode_created_at ON copy_mails (account_id, mode, created_at)

CREATE INDEX ix_copy_mails_address_index ON copy_mails (address_index) \
WHERE address_index IS NOT NULL

CREATE INDEX ix_copy_mails_checkout_session_id ON copy_mails (checkout_session_id)

CREATE INDEX ix_copy_mails_due_at ON copy_mails (due_at) WHERE due_at IS NOT NULL
"""


def upgrade() -> None:
    """Make the table with its indexes."""
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    made = _MADE.replace(" BLOB", " BYTEA") if is_postgresql else _MADE
    for statement in made.strip().split("\n\n"):
        op.execute(statement)
