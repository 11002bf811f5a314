"""An account may want two people to decide on a buyer who waits."""

import sqlalchemy as sa
from alembic import op

revision = "0017_reviewers"
down_revision = "0016_copy_mails"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add how many decide, one until now, and what the first of two has proposed."""
    reviewers = sa.Column("reviewers", sa.Integer, nullable=False, server_default="1")
    op.add_column("accounts", reviewers)
    op.add_column("buyers", sa.Column("proposal", sa.Text))
