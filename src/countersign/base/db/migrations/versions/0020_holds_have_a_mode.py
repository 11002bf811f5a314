"""A hold has an owner: an account in a mode, which alone it binds, or the deployment."""

from alembic import op

revision = "0020_holds_have_a_mode"
down_revision = "0019_person_subjects"
branch_labels = None
depends_on = None

# On a record of an order: that of the record. Else what the audit says: placed by a key, that of
# the key. Of others it is not known whose they are, and they go on binding everyone in both modes.
_KNOWN = (
    "SELECT r.account_id, r.mode FROM records r WHERE r.id = legal_holds.subject",
    """SELECT k.account_id, k.mode FROM audit_log a JOIN api_keys k ON k.id = a.actor
    WHERE a.action = 'hold_placed' AND a.details LIKE '%"hold_id":"' || legal_holds.id || '"%'
    ORDER BY a.id LIMIT 1""",
)


def upgrade() -> None:
    """Add both columns, from what each hold names or who placed it."""
    op.execute("ALTER TABLE legal_holds ADD COLUMN account_id VARCHAR(40) DEFAULT '' NOT NULL")
    op.execute(
        "ALTER TABLE legal_holds ADD COLUMN mode VARCHAR(4)"
        " CONSTRAINT ck_legal_holds_mode CHECK (mode IN ('test', 'live'))"
    )
    for known in _KNOWN:
        op.execute(
            f"UPDATE legal_holds SET (account_id, mode) = ({known})"  # noqa: S608 - our own names
            f" WHERE account_id = '' AND EXISTS ({known})"
        )
    op.create_index(
        "ix_legal_holds_account_id_mode_id", "legal_holds", ["account_id", "mode", "id"]
    )
