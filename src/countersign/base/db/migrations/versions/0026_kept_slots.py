"""The embedded database looks kept responses up in sorted levels of slots, not in a random index."""

from pathlib import Path

from alembic import op

revision = "0026_kept_slots"
down_revision = "0025_orders"
branch_labels = None
depends_on = None

_BYTES = {"sqlite": ("BLOB", " WITHOUT ROWID"), "postgresql": ("BYTEA", "")}


def upgrade() -> None:
    """Make the table; the embedded database copies its kept responses, which last for a day."""
    engine = op.get_bind().dialect.name
    statements = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").split("\n\n")
    made, *others = [statement.format(*_BYTES[engine]) for statement in statements]
    for statement in (made, *(others if engine == "sqlite" else ())):
        op.execute(statement)
