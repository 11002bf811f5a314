"""An account may let buyers put the initials of the first line on further lines."""

import sqlalchemy as sa
from alembic import op

revision = "0014_adopted_initials"
down_revision = "0013_people"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what was never allowed before."""
    op.add_column("account_brands", sa.Column("initials", sa.String(16)))
