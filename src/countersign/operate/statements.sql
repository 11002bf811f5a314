-- The rights of the role of servers on PostgreSQL.

-- name: missing_rights
SELECT wanted.right_ || ' on ' || wanted.table_
FROM unnest(CAST(:tables AS text[]), CAST(:rights AS text[]), CAST(:columns AS text[]))
    AS wanted (table_, right_, column_)
WHERE to_regclass(wanted.table_) IS NOT NULL AND NOT CASE wanted.column_
    WHEN '' THEN has_table_privilege(to_regclass(wanted.table_), wanted.right_)
    ELSE has_column_privilege(to_regclass(wanted.table_), wanted.column_, wanted.right_) END
UNION ALL
SELECT 'USAGE on ' || sequencename FROM pg_sequences
WHERE schemaname = current_schema()
    AND NOT has_sequence_privilege(quote_ident(sequencename), 'USAGE')
UNION ALL
SELECT 'USAGE on SCHEMA public' WHERE NOT has_schema_privilege('public', 'USAGE')

-- Backups: the shred keys, and the names of erased buyers, whom an earlier backup still contains,
-- go into the database `keys`.

-- name: take_keys_out
CREATE TABLE keys.made (at_ns INTEGER NOT NULL);
CREATE TABLE keys.shred_keys (record_id TEXT PRIMARY KEY, key BLOB) WITHOUT ROWID;
INSERT INTO keys.made VALUES (:made_ns);
INSERT INTO keys.shred_keys SELECT record_id, key FROM main.shred_keys;
DELETE FROM main.shred_keys;
CREATE TABLE keys.erased_buyers (name TEXT PRIMARY KEY, value BLOB);
INSERT INTO keys.erased_buyers SELECT name, value FROM main.deployment WHERE name GLOB :erased

-- A restore: only the keys of what the backup contains, and what was not erased at the time.

-- name: put_keys_back
INSERT OR IGNORE INTO main.shred_keys SELECT record_id, key FROM keys.shred_keys AS k
WHERE EXISTS (SELECT 1 FROM main.disclosures WHERE record_id = k.record_id)
    OR EXISTS (SELECT 1 FROM main.verification_evidence WHERE record_id = k.record_id)
    OR EXISTS (SELECT 1 FROM main.pending_sessions WHERE id = k.record_id)

-- The buyers erased since the backup.

-- name: erase_again
INSERT OR REPLACE INTO main.deployment (name, value)
SELECT name, ? FROM (
    SELECT name, value FROM keys.erased_buyers EXCEPT SELECT name, value FROM main.deployment
)

-- name: unreadable
SELECT count(*) FROM disclosures AS d
WHERE NOT EXISTS (SELECT 1 FROM shred_keys AS k WHERE k.record_id = d.record_id)
