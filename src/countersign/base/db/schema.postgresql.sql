WITH ours AS (
    SELECT oid, relname, relpersistence, relacl FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
), parts (table_, part, definition) AS (
    SELECT relname, 'column ' || attname, concat(format_type(atttypid, atttypmod),
        CASE WHEN attnotnull THEN ' NOT NULL' END,
        ' DEFAULT ' || pg_get_expr(adbin, adrelid), attidentity)
    FROM ours JOIN pg_attribute ON attrelid = ours.oid AND attnum > 0 AND NOT attisdropped
        LEFT JOIN pg_attrdef ON adrelid = ours.oid AND adnum = attnum
    UNION ALL SELECT relname, 'constraint ' || conname, pg_get_constraintdef(c.oid)
    FROM ours JOIN pg_constraint AS c ON conrelid = ours.oid AND contype IN ('c', 'f', 'p', 'u')
    UNION ALL SELECT ours.relname, 'index ' || i.relname,
        concat(pg_get_indexdef(i.oid), CASE WHEN NOT indisvalid THEN ' INVALID' END)
    FROM ours JOIN pg_index ON indrelid = ours.oid JOIN pg_class AS i ON i.oid = indexrelid
    WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.oid)
    UNION ALL SELECT relname, 'trigger ' || tgname,
        concat_ws(' ', pg_get_triggerdef(t.oid), tgenabled, proconfig, prosrc)
    FROM ours JOIN pg_trigger AS t ON tgrelid = ours.oid AND NOT tgisinternal
        JOIN pg_proc AS p ON p.oid = tgfoid
    UNION ALL SELECT relname, 'storage', CASE relpersistence WHEN 'p' THEN 'LOGGED'
        ELSE 'UNLOGGED' END FROM ours
    UNION ALL SELECT ours.relname, 'sequence ' || s.relname,
        concat(format_type(seqtypid, NULL), ' INCREMENT BY ', seqincrement,
        CASE WHEN seqcycle THEN ' CYCLE' END)
    FROM ours JOIN pg_depend AS d ON refobjid = ours.oid AND deptype IN ('a', 'i')
        AND classid = 'pg_class'::regclass AND refclassid = classid
        JOIN pg_class AS s ON s.oid = objid JOIN pg_sequence ON seqrelid = s.oid
    UNION ALL SELECT relname, 'right of PUBLIC to ' || privilege_type, ''
    FROM ours, aclexplode(relacl)
    WHERE grantee = 0 AND privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE') AND EXISTS
        (SELECT FROM pg_trigger WHERE tgrelid = ours.oid AND tgname = relname || '_no_change')
)
SELECT table_, part, replace(definition, quote_ident(current_schema()) || '.', '') FROM parts
