-- Kept responses. `{}` is the condition of `SelectAmong`.

-- name: kept_responses
SELECT slot, account_id, mode, fingerprint, response, created_at, expires_at
FROM idempotency_keys WHERE slot {}

-- The same on the embedded database, by the first 8 bytes of each slot.

-- name: kept_responses_on_sqlite
SELECT i.slot, i.account_id, i.mode, i.fingerprint, i.response, i.created_at, i.expires_at
FROM kept_slots AS k CROSS JOIN idempotency_keys AS i
WHERE k.level IN (0, 1, 2, 3) AND k.slot {}
AND i.expires_at = k.expires_at
AND i.slot BETWEEN k.slot AND unhex(hex(k.slot) || 'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF')

-- name: delete_kept
DELETE FROM idempotency_keys WHERE expires_at = ? AND slot = ?
