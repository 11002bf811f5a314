"""People may sign in at a provider of OpenID Connect: by what it knows them."""

from alembic import op

revision = "0019_person_subjects"
down_revision = "0018_figures_of_a_day"
branch_labels = None
depends_on = None

_MADE = """
CREATE TABLE person_subjects (
  person_id VARCHAR(40) NOT NULL,
  lookup BLOB NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  CONSTRAINT pk_person_subjects PRIMARY KEY (person_id),
  CONSTRAINT fk_person_subjects_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT uq_person_subjects_lookup UNIQUE (lookup)
)
"""


def upgrade() -> None:
    """Make the table."""
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    op.execute(_MADE.replace(" BLOB", " BYTEA") if is_postgresql else _MADE)
