CREATE TABLE overrides (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_overrides_mode CHECK (mode IN ('test', 'live')),
  clearance_id VARCHAR(40) NOT NULL,
  order_index {bytes},
  by_key BOOLEAN NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_overrides PRIMARY KEY (id),
  CONSTRAINT uq_overrides_clearance_id UNIQUE (clearance_id)
)

CREATE INDEX ix_overrides_order_index ON overrides (order_index)

ALTER TABLE clearance_settings ADD COLUMN overrides_per_day INTEGER NOT NULL DEFAULT '0'
