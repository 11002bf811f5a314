"""A key has a maker, a person or the machine, and what is read with it is counted."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0022_key_makers"
down_revision = "0021_audit_owners"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; of the keys of before the audit knows who asked for them.

    A key that a key asked for is of that one's maker. A successor is of its predecessor's maker,
    or, where that is the machine, of who asked for the rotation: that person has seen it. What the
    audit does not know was made on the machine.
    """
    op.add_column("api_keys", sa.Column("made_by", sa.String(40)))
    op.add_column("api_keys", sa.Column("read_on", sa.BigInteger))
    op.add_column("api_keys", sa.Column("reads", sa.BigInteger))
    bind = op.get_bind()
    behind: dict[str, list[str]] = {}  # key → who may be its maker, the first one that is a person
    for actor, action, details in bind.execute(
        sa.text(
            "SELECT actor, action, details FROM audit_log"
            " WHERE action IN ('key_created', 'key_rotated')"
        )
    ):
        said = json.loads(details)
        is_new = action == "key_created"
        made = said["key_id"] if is_new else said["successor"]
        behind[made] = [actor] if is_new else [said["key_id"], actor]

    def maker(key: str) -> str | None:
        """The person, through all keys between; each one is looked at once."""
        waiting, seen = [key], set[str]()
        while waiting:
            one = waiting.pop(0)
            if one.startswith("per_"):
                return one
            if one not in seen:
                seen.add(one)
                waiting = [*behind.get(one, ()), *waiting]
        return None

    of_people = [{"made": key, "by": by} for key in behind if (by := maker(key)) is not None]
    if of_people:
        bind.execute(sa.text("UPDATE api_keys SET made_by = :by WHERE id = :made"), of_people)
