"""Whether live orders of an account have to name their product class."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make a column for it; accounts that exist keep it optional, new ones do not."""
    op.add_column(
        "clearance_settings",
        sa.Column(
            "product_class_required", sa.Boolean(), server_default=sa.false(), nullable=False
        ),
    )
    # The defaults of that time, in seconds: 7 days and 24 hours.
    op.execute(
        "INSERT INTO clearance_settings"
        " (account_id, acknowledgment_max_age, lifetime, product_class_required, changed_at)"
        " SELECT id, 604800, 86400, FALSE, created_at FROM accounts"
        " WHERE id NOT IN (SELECT account_id FROM clearance_settings)"
    )
