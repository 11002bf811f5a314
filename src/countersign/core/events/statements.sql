-- A row with several events. Its numbers are those after the last row's. On PostgreSQL they are its
-- own, committed or not.

-- name: several_on_sqlite
INSERT INTO events (tx, object_id, first_seq, seq, account_id, mode, type, objects, at)
SELECT {tx}, '', last + 1, last + ?, ?, ?, ?, ?, ?
FROM (SELECT coalesce(max(seq), 0) AS last FROM events) AS numbers

-- name: several_on_postgresql
INSERT INTO events (tx, object_id, first_seq, seq, account_id, mode, type, objects, at)
SELECT {tx}, '', last + 1, last + ?, ?, ?, ?, ?, ?
FROM (SELECT nextval('events_seq_seq') - {numbers} AS last) AS numbers

-- The type is no condition: PostgreSQL would begin with all acknowledgments if its statistics are
-- from a time with few.

-- name: sealed
SELECT r.account_id, r.mode, r.id, r.type
FROM log_entries e JOIN records r ON r.id = e.record_id
WHERE e.log_id = ? AND e.leaf_index >= ? AND e.leaf_index < ?
ORDER BY e.leaf_index
