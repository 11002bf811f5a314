CREATE TABLE order_acts (
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_order_acts_mode CHECK (mode IN ('test', 'live')),
  at BIGINT NOT NULL,
  key {bytes} NOT NULL,
  member_id VARCHAR(40) NOT NULL,
  notice_id VARCHAR(64),
  state VARCHAR(20),
  due_at BIGINT,
  indexed BOOLEAN NOT NULL,
  CONSTRAINT pk_order_acts PRIMARY KEY (account_id, mode, at, key, member_id)
){storage}

CREATE INDEX ix_order_acts_key ON order_acts (key) WHERE indexed

CREATE INDEX ix_order_acts_member_id ON order_acts (member_id) WHERE indexed

INSERT INTO order_acts SELECT a.account_id, a.mode, a.at,
 coalesce(d.session_index, d.reference_index, {to_bytes}(substr(a.id, 5){as_bytes})),
 a.id, a.notice_id, 'acknowledged', NULL, (1 = 0)
FROM records AS a LEFT JOIN disclosures AS d ON d.record_id = a.id WHERE a.type = 'acknowledgment'

INSERT INTO order_acts SELECT c.account_id, c.mode, c.at,
 coalesce(o.key, d.session_index, d.reference_index, {to_bytes}(substr(c.id, 5){as_bytes})),
 c.id, NULL, CASE WHEN c.expires_at IS NULL THEN 'refused' ELSE 'cleared' END, c.expires_at, (1 = 1)
FROM clearances AS c LEFT JOIN disclosures AS d ON d.record_id = c.id
LEFT JOIN records AS a ON a.id = c.ack_id AND a.account_id = c.account_id AND a.mode = c.mode
LEFT JOIN order_acts AS o ON o.account_id = a.account_id AND o.mode = a.mode AND o.at = a.at
 AND o.member_id = a.id

INSERT INTO order_acts SELECT f.account_id, f.mode, f.at, o.key, f.id, NULL,
 CASE WHEN f.adult_signature OR {to_text}(r.body{as_text}) LIKE '%"delivered_at":"%' THEN 'delivered'
 ELSE 'shipped' END, NULL, (1 = 1)
FROM fulfilments AS f JOIN records AS r ON r.id = f.id
JOIN order_acts AS o ON o.indexed AND o.member_id = f.clearance_id

INSERT INTO order_acts SELECT s.account_id, s.mode, s.created_at,
 coalesce(o.key, c.key, {to_bytes}(substr(s.id, 5){as_bytes})), s.id, NULL,
 CASE s.status WHEN 'open' THEN 'waiting_for_buyer' WHEN 'completed' THEN 'open' ELSE 'closed' END,
 CASE WHEN s.status = 'open' THEN s.expires_at END, (1 = 1)
FROM checkout_sessions AS s
LEFT JOIN order_acts AS c ON c.indexed AND c.member_id = s.clearance_id
LEFT JOIN records AS a ON a.id = s.ack_id
LEFT JOIN order_acts AS o ON o.account_id = a.account_id AND o.mode = a.mode AND o.at = a.at
 AND o.member_id = a.id

INSERT INTO order_acts
SELECT o.account_id, o.mode, s.changed_at, o.key, s.verification_id, NULL, NULL, NULL, (1 = 1)
FROM started_checks AS s JOIN order_acts AS o ON o.indexed AND o.member_id = s.reference
WHERE s.verification_id IS NOT NULL ON CONFLICT DO NOTHING
