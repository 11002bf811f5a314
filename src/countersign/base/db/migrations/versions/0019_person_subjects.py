"""The schema of the last build before these migrations began, as SQL that never changes again.

One file for each engine. Until then there were nineteen migrations, of which this one keeps the
last one's name: a database that they made goes on from here.
"""

from pathlib import Path

from alembic import op

revision = "0019_person_subjects"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements of the engine's file, which are separated by empty lines."""
    engine = op.get_bind().dialect.name
    statements = Path(__file__).with_name(f"{revision}.{engine}.sql")
    for statement in statements.read_text(encoding="utf-8").split("\n\n"):
        op.execute(statement)
