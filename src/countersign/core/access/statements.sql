-- Kept responses. `{}` is the condition of `SelectAmong`.

-- name: kept_responses
SELECT slot, account_id, mode, fingerprint, response, created_at, expires_at
FROM idempotency_keys WHERE slot {}

-- name: delete_expired
DELETE FROM idempotency_keys WHERE slot = ? AND expires_at <= ?
