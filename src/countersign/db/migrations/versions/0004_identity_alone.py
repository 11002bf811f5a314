"""Sessions that verify a buyer without a notice are checkout sessions like all others.

Those that were verification sessions and are open end as expired: nothing can read or cancel them
under their own address any more. What is reported of the others, and to whom, is named as it is for
every checkout session.
"""

import json
import time

import sqlalchemy as sa
from alembic import op

revision = "0004_identity_alone"
down_revision = "0003_erasable_references"
branch_labels = None
depends_on = None

# The loop that ends sessions finds them at the next start, and writes the event of each end with
# it. Until then, they are read as expired.
_END = """
UPDATE checkout_sessions SET expires_at = :now, expiry_due_at = :now, revision = revision + 1
  WHERE substr(id, 1, 4) = 'vfs_' AND status = 'open' AND expires_at > :now
"""
# That a buyer declined was a cancellation; where the session is gone, nothing says which it was.
_EVENTS = """
UPDATE events SET type = 'checkout_session.declined'
  WHERE type = 'verification_session.cancelled' AND EXISTS (SELECT 1 FROM checkout_sessions
  WHERE checkout_sessions.id = events.object_id AND checkout_sessions.status = 'declined');
UPDATE events SET type = 'checkout_session.' || substr(type, 22)
  WHERE substr(type, 1, 21) = 'verification_session.'
"""
_NOW_CALLED = {
    "verification_session.completed": ("checkout_session.completed",),
    "verification_session.blocked": ("checkout_session.blocked",),
    "verification_session.expired": ("checkout_session.expired",),
    "verification_session.cancelled": ("checkout_session.cancelled", "checkout_session.declined"),
}


def upgrade() -> None:
    """End what is open, then rename the events, and what webhook endpoints asked for."""
    bind = op.get_bind()
    bind.execute(sa.text(_END), {"now": time.time_ns() // 1_000_000})
    for statement in _EVENTS.split(";"):
        op.execute(statement)
    asked = "SELECT id, event_types FROM webhook_endpoints WHERE event_types LIKE :some"
    for row in bind.execute(sa.text(asked), {"some": "%verification_session.%"}).all():
        types = [new for old in json.loads(row.event_types) for new in _NOW_CALLED.get(old, (old,))]
        values = {"id": row.id, "types": json.dumps(sorted({*types}), separators=(",", ":"))}
        changed = "UPDATE webhook_endpoints SET event_types = :types WHERE id = :id"
        bind.execute(sa.text(changed), values)
