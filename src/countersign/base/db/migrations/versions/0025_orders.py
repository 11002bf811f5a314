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

_ENGINES = {
    "sqlite": {
        "bytes": "BLOB",
        "storage": " WITHOUT ROWID",
        "to_bytes": "CAST",
        "as_bytes": " AS BLOB",
        "to_text": "CAST",
        "as_text": " AS TEXT",
    },
    "postgresql": {
        "bytes": "BYTEA",
        "storage": "",
        "to_bytes": "convert_to",
        "as_bytes": ", 'UTF8'",
        "to_text": "convert_from",
        "as_text": ", 'UTF8'",
    },
}
"""The words of each engine for the braces in the statements."""


def upgrade() -> None:
    """Run the statements of the file, which are separated by empty lines."""
    statements = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    for statement in statements.format(**_ENGINES[op.get_bind().dialect.name]).split("\n\n"):
        op.execute(statement)
