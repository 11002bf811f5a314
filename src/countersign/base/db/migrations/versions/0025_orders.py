"""A row for each act on an order, also for the acts of earlier releases, by the same keys.

Two acknowledgments of one session are one order; an act without an acknowledgment is an order of
its own.
"""

from pathlib import Path

from alembic import op

revision = "0025_orders"
down_revision = "0024_named_orders"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements of the engine's file, which are separated by empty lines."""
    engine = op.get_bind().dialect.name
    statements = Path(__file__).with_name(f"{revision}.{engine}.sql").read_text(encoding="utf-8")
    for statement in statements.split("\n\n"):
        op.execute(statement)
