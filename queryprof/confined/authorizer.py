"""Restrict SQL from strangers to a single database.

An authorizer (https://www.sqlite.org/c3ref/set_authorizer.html) allows known actions and refuses
all others: statements that name files, functions and virtual tables that read files, and most
PRAGMAs. This module uses only the standard library, because the process of planner/judge.py runs it
under the recorded program's interpreter.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

OK, DENY = 0, 1
READ, SELECT, PRAGMA, ATTACH, DETACH, CREATE_TABLE_OF_MODULE, FUNCTION = 20, 21, 19, 24, 25, 29, 31
LAST_KNOWN = 33
"""The highest of SQLite's action codes that this module knows. Higher codes are refused."""

MAX_VALUE_BYTES = 128 << 20
"""Size limit of a text or blob. SQLite checks neither clocks nor interrupts while it
creates one.
"""

LIMIT_LENGTH = 0

FUNCTIONS_OF_FILES = frozenset(
    {
        "load_extension",
        "fts3_tokenizer",
        "readfile",
        "writefile",
        "edit",
        "lsmode",
        "zipfile",
        "zipfile_cds",
        "eval",
        "define",
        "exec",
        "shell",
        "system",
        "fileio_read",
        "fileio_write",
        "fileio_append",
        "fileio_mkdir",
        "fileio_symlink",
        "fileio_scan",
        "fileio_ls",
        "fileio_mode",
    }
)
"""Functions of the sqlite3 shell and of extensions that access files or run code. The SQLite of a
driver should not have these functions.
"""

MODULES = frozenset(
    {
        "fts3",
        "fts4",
        "fts4aux",
        "fts3tokenize",
        "fts5",
        "fts5vocab",
        "rtree",
        "rtree_i32",
        "geopoly",
        "dbstat",
    }
)
"""Modules of virtual tables whose rows are in the database."""

FACTS = frozenset(
    {
        "application_id",
        "collation_list",
        "compile_options",
        "data_version",
        "database_list",
        "encoding",
        "foreign_key_check",
        "foreign_key_list",
        "freelist_count",
        "function_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "max_page_count",
        "module_list",
        "page_count",
        "page_size",
        "pragma_list",
        "quick_check",
        "schema_version",
        "table_info",
        "table_list",
        "table_xinfo",
        "user_version",
    }
)
"""PRAGMAs that read. Exception: if a PRAGMA is also in SETTINGS or CHANGED_BY_VALUE, it changes
something when it has a value.
"""

CHANGED_BY_VALUE = frozenset({"schema_version", "max_page_count", "encoding"})

SETTINGS = frozenset(
    {
        "analysis_limit",
        "application_id",
        "auto_vacuum",
        "automatic_index",
        "busy_timeout",
        "cache_size",
        "cache_spill",
        "case_sensitive_like",
        "cell_size_check",
        "checkpoint_fullfsync",
        "defer_foreign_keys",
        "encoding",
        "foreign_keys",
        "fullfsync",
        "ignore_check_constraints",
        "incremental_vacuum",
        "journal_mode",
        "journal_size_limit",
        "legacy_alter_table",
        "locking_mode",
        "mmap_size",
        "optimize",
        "page_size",
        "query_only",
        "read_uncommitted",
        "recursive_triggers",
        "reverse_unordered_selects",
        "secure_delete",
        "shrink_memory",
        "synchronous",
        "temp_store",
        "threads",
        "user_version",
        "wal_autocheckpoint",
        "wal_checkpoint",
    }
)
"""PRAGMAs that change a connection or its file. A replay allows them, because a program's own
PRAGMAs are part of its workload.
"""


class Authorizer:
    """Called by SQLite for each action of a statement that is being prepared.

    Attributes:
        refused: a description of the last refused action.
    """

    def __init__(
        self, settings: frozenset[str] = frozenset(), modules: frozenset[str] = MODULES
    ) -> None:
        self._settings, self._modules = settings, modules
        self.refused = ""

    def __call__(
        self, action: int, first: str | None, second: str | None, *_place: str | None
    ) -> int:
        refused = self._refusal_reason(action, first, second)
        if refused:
            self.refused = refused
            return DENY
        return OK

    def _refusal_reason(self, action: int, first: str | None, second: str | None) -> str:
        name = (second or "").lower()
        if action == FUNCTION:
            return f"the function {name}" if name in FUNCTIONS_OF_FILES else ""
        if action == PRAGMA:
            setting = (first or "").lower()
            return "" if self._is_allowed(setting, second) else f"PRAGMA {setting}"
        if action == ATTACH:  # VACUUM attaches a file without a name; VACUUM INTO has a name
            return "" if first == "" else "ATTACH or VACUUM INTO"
        if action == DETACH:
            return "DETACH"
        if action == CREATE_TABLE_OF_MODULE:
            return "" if name in self._modules else f"a virtual table of {name}"
        return "" if 0 < action <= LAST_KNOWN else f"the action {action}"

    def _is_allowed(self, name: str, value: str | None) -> bool:
        if name in FACTS and (value is None or name not in CHANGED_BY_VALUE | SETTINGS):
            return True
        if name == "writable_schema":  # RESET reads the schema again, and does not make it writable
            return (value or "").lower() == "reset"
        return name in self._settings


def refuse_select(authorizer: Authorizer) -> Callable[..., int]:
    """Return an authorizer for a CREATE statement that creates no rows: it also refuses a SELECT.
    The module of a virtual table may select from its own, empty tables.
    """
    actions: set[int] = set()

    def authorize(action: int, *place: str | None) -> int:
        actions.add(action)
        makes_rows = action == SELECT and CREATE_TABLE_OF_MODULE not in actions
        return DENY if makes_rows else authorizer(action, *place)

    return authorize
