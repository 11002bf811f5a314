"""The embedded database looks kept responses up in sorted levels, not in a random index."""

from pathlib import Path

from alembic import op

revision = "0026_kept_slots"
down_revision = "0025_orders"


def upgrade() -> None:
    """Make the table; the embedded database copies its kept responses, which last for a day."""
    file = Path(__file__).with_suffix(f".{op.get_bind().dialect.name}.sql")
    for statement in file.read_text(encoding="utf-8").split("\n\n"):
        op.execute(statement)
