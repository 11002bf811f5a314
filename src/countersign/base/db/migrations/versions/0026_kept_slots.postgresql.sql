CREATE TABLE kept_slots (
  level INTEGER NOT NULL,
  slot BYTEA NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_kept_slots PRIMARY KEY (level, slot)
)
