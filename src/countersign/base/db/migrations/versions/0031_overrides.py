"""Manual overrides of refusals; an account says how many its keys make a day."""

from pathlib import Path

from alembic import op

revision = "0031_overrides"
down_revision = "0030_webhook_responses"


def upgrade() -> None:
    """Run the statements of the file, which are separated by empty lines."""
    kind = "BYTEA" if op.get_bind().dialect.name == "postgresql" else "BLOB"
    statements = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    for statement in statements.format(bytes=kind).split("\n\n"):
        op.execute(statement)
