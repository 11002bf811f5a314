"""People who may use the console, with roles, passkeys, links and sessions; the audit's chain."""

from alembic import op

revision = "0013_people"
down_revision = "0012_ways_to_the_shop"
branch_labels = None
depends_on = None

_TABLES = """
CREATE TABLE audit_chain (
  position BIGINT NOT NULL,
  entry_id VARCHAR(40) NOT NULL,
  salt {bytes} NOT NULL,
  digest {bytes} NOT NULL,
  CONSTRAINT pk_audit_chain PRIMARY KEY (position),
  CONSTRAINT uq_audit_chain_entry_id UNIQUE (entry_id)
)

CREATE TABLE people (
  id VARCHAR(40) NOT NULL,
  name VARCHAR(100) NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT pk_people PRIMARY KEY (id)
)

CREATE TABLE person_grants (
  id VARCHAR(40) NOT NULL,
  person_id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40),
  role VARCHAR(12) NOT NULL,
  granted_at BIGINT NOT NULL,
  granted_by VARCHAR(100) NOT NULL,
  CONSTRAINT pk_person_grants PRIMARY KEY (id),
  CONSTRAINT uq_person_grants_person_id UNIQUE (person_id, account_id),
  CONSTRAINT fk_person_grants_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT fk_person_grants_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)

CREATE INDEX ix_person_grants_account_id ON person_grants (account_id)

CREATE UNIQUE INDEX ix_person_grants_person_id ON person_grants (person_id) WHERE account_id IS NULL

CREATE TABLE person_links (
  id VARCHAR(40) NOT NULL,
  person_id VARCHAR(40) NOT NULL,
  kind VARCHAR(10) NOT NULL,
  digest {bytes} NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_person_links PRIMARY KEY (id),
  CONSTRAINT uq_person_links_person_id UNIQUE (person_id),
  CONSTRAINT fk_person_links_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT uq_person_links_digest UNIQUE (digest)
)

CREATE TABLE person_passkeys (
  id VARCHAR(40) NOT NULL,
  person_id VARCHAR(40) NOT NULL,
  lookup {bytes} NOT NULL,
  public_key {bytes} NOT NULL,
  sign_count BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  CONSTRAINT pk_person_passkeys PRIMARY KEY (id),
  CONSTRAINT fk_person_passkeys_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT uq_person_passkeys_lookup UNIQUE (lookup)
)

CREATE INDEX ix_person_passkeys_person_id ON person_passkeys (person_id)

CREATE TABLE person_sessions (
  id VARCHAR(40) NOT NULL,
  person_id VARCHAR(40) NOT NULL,
  digest {bytes} NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  passkey_at BIGINT NOT NULL,
  CONSTRAINT pk_person_sessions PRIMARY KEY (id),
  CONSTRAINT fk_person_sessions_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT uq_person_sessions_digest UNIQUE (digest)
)

CREATE INDEX ix_person_sessions_person_id ON person_sessions (person_id)
"""
_SQLITE_KEEPS = """
CREATE TRIGGER audit_chain_no_update BEFORE UPDATE ON audit_chain BEGIN SELECT RAISE(ABORT, \
'audit_chain is append-only'); END

CREATE TRIGGER audit_chain_no_delete BEFORE DELETE ON audit_chain BEGIN SELECT RAISE(ABORT, \
'audit_chain is append-only'); END

CREATE TRIGGER audit_chain_no_replace BEFORE INSERT ON audit_chain WHEN EXISTS (SELECT 1 FROM \
audit_chain WHERE position = NEW.position) OR EXISTS (SELECT 1 FROM audit_chain WHERE \
entry_id = NEW.entry_id) OR EXISTS (SELECT 1 FROM audit_chain WHERE rowid = NEW.rowid) BEGIN \
SELECT RAISE(ABORT, 'audit_chain is append-only'); END
"""
_POSTGRESQL_KEEPS = """
CREATE FUNCTION audit_chain_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE \
EXCEPTION 'audit_chain is append-only'; END $$

CREATE TRIGGER audit_chain_no_change BEFORE UPDATE OR DELETE ON audit_chain FOR EACH ROW \
EXECUTE FUNCTION audit_chain_append_only()

CREATE TRIGGER audit_chain_no_truncate BEFORE TRUNCATE ON audit_chain FOR EACH STATEMENT \
EXECUTE FUNCTION audit_chain_append_only()

ALTER TABLE audit_chain ENABLE ALWAYS TRIGGER audit_chain_no_change

ALTER TABLE audit_chain ENABLE ALWAYS TRIGGER audit_chain_no_truncate

REVOKE UPDATE, DELETE, TRUNCATE ON audit_chain FROM PUBLIC
"""


def upgrade() -> None:
    """Make the tables, and keep the chain as it is written."""
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    tables = _TABLES.replace("{bytes}", "BYTEA" if is_postgresql else "BLOB")
    keeps = _POSTGRESQL_KEEPS if is_postgresql else _SQLITE_KEEPS
    for statement in (tables + keeps).strip().split("\n\n"):
        op.execute(statement)
