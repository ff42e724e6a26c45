"""SQL queries that read the tables, columns and indexes of an empty copy of a schema."""

from __future__ import annotations

COLUMNS_SQL = (
    "SELECT c.name, c.type, c.pk FROM sqlite_schema AS t, pragma_table_xinfo(t.name) AS c"
    " WHERE t.name = ? AND t.type = 'table' AND t.rootpage > 0 AND c.hidden <> 1"
)
REFERRING_COLUMNS_SQL = 'SELECT DISTINCT "from" FROM pragma_foreign_key_list(?)'
NAMES_SQL = "SELECT name FROM sqlite_schema"
TABLE_OF = (
    "SELECT s.tbl_name FROM sqlite_schema AS s, pragma_index_list(s.tbl_name) AS i"
    " WHERE s.name = ? AND s.type = 'index' AND i.name = s.name AND NOT i.\"unique\""
)
"""Excludes unique indexes, because a wider index would no longer enforce uniqueness."""
INDEXES = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?"
KEYS = (
    'SELECT i.name, k.name, k."desc" FROM pragma_index_list(?) AS i, pragma_index_xinfo(i.name) AS'
    " k WHERE k.key AND NOT i.partial ORDER BY i.name, k.seqno"
)
