"""Buyers and whole responses of providers have an end; requests of people have a clock."""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0029_ends"
down_revision = "0028_key_names"


def upgrade() -> None:
    """Whole responses of before stay in their place, until the evidence ends."""
    file = Path(__file__).with_suffix(".sql")
    for statement in file.read_text(encoding="utf-8").split("\n\n"):
        op.execute(statement)
    op.add_column("verification_evidence", sa.Column("response", sa.LargeBinary))
