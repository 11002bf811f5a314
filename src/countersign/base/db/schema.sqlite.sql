SELECT m.name, 'column ' || c.name, c.type || CASE c."notnull" WHEN 1 THEN ' NOT NULL' ELSE ''
    END || coalesce(' DEFAULT ' || c.dflt_value, '')
FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'
UNION ALL SELECT tbl_name, type || ' ' || name, sql FROM sqlite_master WHERE sql IS NOT NULL
UNION ALL SELECT name, 'storage', iif(wr, 'WITHOUT ROWID', 'ROWID') FROM pragma_table_list
WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite%'
