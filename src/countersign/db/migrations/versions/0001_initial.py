"""The schema of the first release, as SQL that never changes again: one file for each engine."""

from pathlib import Path

from alembic import op

revision = "0001_initial"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements of the engine's file, which are separated by empty lines."""
    engine = op.get_bind().dialect.name
    statements = Path(__file__).with_name(f"{revision}.{engine}.sql")
    for statement in statements.read_text(encoding="utf-8").split("\n\n"):
        op.execute(statement)
