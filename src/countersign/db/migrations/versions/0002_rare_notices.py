"""An index for a list by a notice that is rare among its account's records."""

from alembic import op

revision = "0002_rare_notices"
down_revision = "0001_initial"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index; the statement is the same on both engines."""
    op.execute(
        "CREATE INDEX ix_records_account_id_mode_type_notice_id_id"
        " ON records (account_id, mode, type, notice_id, id)"
    )
