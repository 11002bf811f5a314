"""A delivery has the response of an endpoint that refused it, staff an address for alerts."""

from alembic import op

revision = "0030_webhook_responses"
down_revision = "0029_ends"


def upgrade() -> None:
    """Add the columns; earlier deliveries have no response, and no one is told."""
    kind = "BYTEA" if op.get_bind().dialect.name == "postgresql" else "BLOB"
    op.execute(f"ALTER TABLE webhook_deliveries ADD COLUMN response {kind}")
    for column in (f"address {kind}", "code_sent_at BIGINT", "told_at BIGINT"):
        op.execute(f"ALTER TABLE people ADD COLUMN {column}")
    op.execute(
        "CREATE INDEX ix_webhook_deliveries_created_at ON webhook_deliveries (created_at) "
        "WHERE response IS NOT NULL"
    )
