CREATE TABLE kept_slots (
  level INTEGER NOT NULL,
  slot BLOB NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_kept_slots PRIMARY KEY (level, slot)
)
 WITHOUT ROWID

ALTER TABLE idempotency_keys RENAME TO old_idempotency_keys

CREATE TABLE idempotency_keys (
  slot BLOB NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_idempotency_keys_mode CHECK (mode IN ('test', 'live')),
  fingerprint BLOB NOT NULL,
  response BLOB NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  about VARCHAR(40)
)

INSERT INTO idempotency_keys SELECT slot, account_id, mode, fingerprint, response, created_at,
 expires_at, about FROM old_idempotency_keys ORDER BY expires_at

DROP TABLE old_idempotency_keys

CREATE INDEX ix_idempotency_keys_about ON idempotency_keys (about) WHERE about IS NOT NULL

CREATE INDEX ix_idempotency_keys_expires_at_slot ON idempotency_keys (expires_at, slot)

INSERT OR REPLACE INTO kept_slots SELECT 3, substr(slot, 1, 8), expires_at FROM idempotency_keys
ORDER BY 2

CREATE TRIGGER idempotency_keys_are_found AFTER INSERT ON idempotency_keys BEGIN
  INSERT INTO kept_slots VALUES (0, substr(NEW.slot, 1, 8), NEW.expires_at);
END

CREATE TRIGGER idempotency_keys_are_forgotten AFTER DELETE ON idempotency_keys BEGIN
  DELETE FROM kept_slots
    WHERE level = 0 AND slot = substr(OLD.slot, 1, 8) AND expires_at = OLD.expires_at;
END

CREATE TRIGGER kept_slots_move AFTER INSERT ON idempotency_keys
WHEN substr(NEW.slot, 8, 1) = x'00' BEGIN
  INSERT OR REPLACE INTO kept_slots SELECT 1, slot, expires_at FROM kept_slots
    WHERE level = 0
    ORDER BY slot;
  DELETE FROM kept_slots WHERE level = 0;
  INSERT OR REPLACE INTO kept_slots SELECT 2, slot, expires_at FROM kept_slots
    WHERE level = 1 AND slot
    BETWEEN unhex(substr(hex(NEW.slot), 1, 1) || '0')
    AND unhex(substr(hex(NEW.slot), 1, 1) || 'FFFFFFFFFFFFFFFFF')
    ORDER BY slot;
  DELETE FROM kept_slots WHERE level = 1 AND slot
    BETWEEN unhex(substr(hex(NEW.slot), 1, 1) || '0')
    AND unhex(substr(hex(NEW.slot), 1, 1) || 'FFFFFFFFFFFFFFFFF');
  INSERT OR REPLACE INTO kept_slots SELECT 3, slot, expires_at FROM kept_slots
    WHERE level = 2 AND slot
    BETWEEN unhex(substr(hex(NEW.slot), 1, 2) || '')
    AND unhex(substr(hex(NEW.slot), 1, 2) || 'FFFFFFFFFFFFFFFF')
    ORDER BY slot;
  DELETE FROM kept_slots WHERE level = 2 AND slot
    BETWEEN unhex(substr(hex(NEW.slot), 1, 2) || '')
    AND unhex(substr(hex(NEW.slot), 1, 2) || 'FFFFFFFFFFFFFFFF');
END
