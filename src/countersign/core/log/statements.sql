-- Sealing.

-- name: head
SELECT l.id, l.origin, h.size, h.root, h.at, h.keys_revision, coalesce(c.size, 0),
    coalesce(c.at, 0),
    (SELECT d.value FROM deployment d WHERE d.name = 'sealing_suspended:' || l.mode)
FROM logs l JOIN log_heads h ON h.log_id = l.id
LEFT JOIN checkpoints c ON c.log_id = l.id
    AND c.size = (SELECT max(m.size) FROM checkpoints m WHERE m.log_id = l.id)
WHERE l.mode = ? ORDER BY l.epoch DESC LIMIT 1

-- name: empty
SELECT note FROM checkpoints WHERE log_id = ? AND size = 0

-- name: swap_head
UPDATE log_heads SET size = ?, root = ?, at = ? WHERE log_id = ? AND size = ? AND root = ?

-- name: take_on_sqlite
DELETE FROM log_pending
WHERE record_id IN (SELECT record_id FROM log_pending WHERE mode = ? ORDER BY record_id LIMIT ?)
RETURNING record_id, digest

-- PostgreSQL's statistics mostly see an empty queue, and it would scan all taken rows for each
-- waiting row: as an array they are computed once.

-- name: take_on_postgresql
DELETE FROM log_pending
WHERE record_id
    = ANY (ARRAY(SELECT record_id FROM log_pending WHERE mode = ? ORDER BY record_id LIMIT ?))
RETURNING record_id, digest

-- The logs.

-- name: standing
SELECT h.log_id, h.size, h.keys_revision, coalesce(c.size, 0), coalesce(c.at, 0),
    (SELECT min(record_id) FROM log_pending p WHERE p.mode = l.mode),
    (SELECT count(*) FROM deployment WHERE name IN (?, ?))
FROM logs l JOIN log_heads h ON h.log_id = l.id
LEFT JOIN checkpoints c ON c.log_id = l.id
    AND c.size = (SELECT max(size) FROM checkpoints m WHERE m.log_id = l.id)
WHERE l.epoch = (SELECT max(epoch) FROM logs n WHERE n.mode = l.mode) ORDER BY l.id

-- A key's first and last checkpoints are not known to the millisecond: those around stay, too.

-- name: aged
SELECT c.size,
    EXISTS (SELECT 1 FROM anchors a WHERE a.log_id = c.log_id AND a.size = c.size)
    OR EXISTS (
        SELECT 1 FROM log_keys k, checkpoints n WHERE k.log_id = c.log_id AND n.log_id = c.log_id
        AND n.size
            = (SELECT min(m.size) FROM checkpoints m WHERE m.log_id = c.log_id AND m.size > c.size)
        AND (k.created_at BETWEEN c.at - 120000 AND n.at + 120000
            OR k.retires_at BETWEEN c.at - 120000 AND n.at + 120000))
FROM checkpoints c WHERE c.log_id = ? AND c.size > ? AND c.size <= ?
ORDER BY c.size LIMIT ?

-- The fork guard's values.

-- name: noted
SELECT value FROM deployment WHERE name = ?

-- name: note
INSERT INTO deployment (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: forget
DELETE FROM deployment WHERE name = ?

-- Runs of blind indexes. The first steps from each run to the next by one look-up in the primary
-- key.

-- name: runs
WITH RECURSIVE runs (run) AS (
    SELECT min(run) FROM blind_runs
    UNION ALL
    SELECT (SELECT min(b.run) FROM blind_runs AS b WHERE b.run > runs.run)
    FROM runs WHERE runs.run IS NOT NULL
)
SELECT run FROM runs WHERE run IS NOT NULL

-- name: runs_found
SELECT record_id FROM blind_recent
WHERE session_index IN :keys OR cbid_index IN :keys OR reference_index IN :keys
UNION ALL
SELECT record_id FROM blind_runs WHERE run IN ({runs}) AND key IN :keys

-- name: runs_last
SELECT record_id, (SELECT coalesce(max(run) + 1, 0) FROM blind_runs)
FROM blind_recent ORDER BY record_id LIMIT 1 OFFSET ?

-- name: runs_first_keys
SELECT run, (SELECT min(key) FROM blind_runs AS b WHERE b.run = r.run) FROM ({runs}) AS r

-- No-op if another process has just done it.

-- name: runs_move
INSERT OR IGNORE INTO blind_runs SELECT ?, key, record_id FROM (
    SELECT session_index AS key, record_id FROM blind_recent WHERE record_id <= ?
    UNION ALL SELECT cbid_index, record_id FROM blind_recent WHERE record_id <= ?
    UNION ALL SELECT reference_index, record_id FROM blind_recent WHERE record_id <= ?
) WHERE key IS NOT NULL ORDER BY key, record_id

-- name: runs_moved
DELETE FROM blind_recent WHERE record_id <= ?

-- name: runs_merge
INSERT OR IGNORE INTO blind_runs SELECT ?, key, record_id FROM blind_runs
WHERE run IN ({others}) AND key < ? ORDER BY key, record_id

-- name: runs_merged
DELETE FROM blind_runs WHERE run IN ({others}) AND key < ?

-- Parts of proofs.

-- name: places
SELECT record_id, log_id, leaf_index FROM log_entries WHERE record_id {}

-- name: origin
SELECT origin FROM logs WHERE id = ?

-- name: tile
SELECT hashes, root FROM log_tiles WHERE log_id = ? AND level = ? AND tile_index = ?

-- name: roots
SELECT root FROM log_tiles WHERE log_id = ? AND level = ? AND tile_index >= ? AND tile_index < ?
ORDER BY tile_index

-- name: entries
SELECT record_id, digest FROM log_entries WHERE log_id = ? AND leaf_index >= ? AND leaf_index < ?
ORDER BY leaf_index

-- name: newest_anchor
SELECT size, at FROM anchors WHERE log_id = ? AND kind = ? AND name = ? AND renews IS NULL
ORDER BY size DESC, at DESC LIMIT 1

-- name: is_anchored
SELECT EXISTS (SELECT 1 FROM anchors WHERE log_id = ? AND size > ?)

-- What is beyond the size of a log, which each statement asks for: the log may be growing.

-- name: surplus_entries
SELECT 'entry ' || leaf_index FROM log_entries WHERE log_id = ? AND (leaf_index < 0
    OR leaf_index >= (SELECT size FROM log_heads WHERE log_id = ?))
ORDER BY leaf_index LIMIT 100

-- Of the level after the last of these, no tile is ever complete.

-- name: surplus_tiles
SELECT 'tile ' || tile_index || ' of level ' || level FROM log_tiles WHERE log_id = ?
AND (level NOT IN (0, 1, 2, 3, 4, 5, 6) OR tile_index < 0
    OR tile_index >= (SELECT size FROM log_heads WHERE log_id = ?) >> (8 * (level + 1)))
ORDER BY level, tile_index LIMIT 100

-- name: surplus_checkpoints
SELECT 'the checkpoint of size ' || size FROM checkpoints WHERE log_id = ?
AND size > (SELECT size FROM log_heads WHERE log_id = ?)
ORDER BY size LIMIT 100

-- Checks of records.

-- name: records_in
SELECT r.id, {own}, r.mode, r.type, r.at, r.digest, r.body,
    EXISTS (SELECT 1 FROM log_entries e WHERE e.record_id = r.id),
    EXISTS (SELECT 1 FROM log_pending p WHERE p.record_id = r.id),
    d.account_id, d.mode, x.erasure_id
FROM {table} r
LEFT JOIN disclosures d ON d.record_id = r.id
LEFT JOIN erasures x ON x.record_id = r.id
WHERE r.id > :after ORDER BY r.id LIMIT :limit

-- name: notices
SELECT notice_id, version, digest, body FROM notice_versions

-- name: unrecorded_erasures
SELECT x.record_id FROM erasures x LEFT JOIN records r ON r.id = x.erasure_id
WHERE r.id IS NULL ORDER BY x.record_id LIMIT :limit
