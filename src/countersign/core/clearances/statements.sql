-- Facts about orders to decide. `{}` is the condition of `SelectAmong`.

-- name: bind_use
UPDATE acknowledgment_uses SET order_index = ?, clearance_id = ? WHERE ack_id = ?

-- name: acknowledgments
SELECT r.id, r.account_id, r.mode, r.at, r.notice_id, r.body, d.record_id, d.session_index,
    d.cbid_index, d.reference_index
FROM records r LEFT JOIN disclosures d ON d.record_id = r.id
WHERE r.type = 'acknowledgment' AND r.id {}

-- name: uses
SELECT ack_id, cbid, cbid_index, order_index, clearance_id, shipped_under, paid_at
FROM acknowledgment_uses WHERE ack_id {} ORDER BY ack_id

-- name: granted
SELECT c.id, c.kid, c.at, c.expires_at, r.body, d.reference_index
FROM clearances c JOIN records r ON r.id = c.id LEFT JOIN disclosures d ON d.record_id = c.id
WHERE c.id {}

-- name: verifications
SELECT id, account_id, mode, cbid, status, session_index, subject_index, zip_index
FROM verifications WHERE cbid {} ORDER BY id

-- name: blocks
SELECT account_id, mode, cbid FROM buyer_blocks WHERE cbid {}

-- name: rules
SELECT account_id, acknowledgment_max_age, lifetime, paid_max_age, product_class_required,
    order_reference_required, overrides_per_day
FROM clearance_settings WHERE account_id {}

-- name: cleared
SELECT DISTINCT account_id, mode, cbid FROM acknowledgment_uses
WHERE clearance_id IS NOT NULL AND cbid {}
