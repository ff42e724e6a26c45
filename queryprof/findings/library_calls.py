"""How to fix a call of an ORM that runs once per object."""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.sql.clauses import comparisons_of
from queryprof.sql.operands import functions_in
from queryprof.sql.tokens import tokens_of

FILTERED = {
    "django": (
        "The relation is prefetched, but `.filter()`, `.order_by()` and `.first()` query it"
        ' again. Prefetch only the objects that you need: `.prefetch_related(Prefetch("relation",'
        ' queryset=Model.objects.filter(...), to_attr="wanted"))`, and read `object.wanted`. Or'
        " filter `object.relation.all()` in Python."
    ),
    "sqlalchemy": (
        "The relation is loaded with the objects, and then queried again. Filter the loaded"
        " objects in Python, or load the wanted part:"
        " `.options(selectinload(Model.relation.and_(...)))`."
    ),
}
"""By library: how to load the wanted part of related data in advance."""

FIXES = {
    ("django", "exists"): (
        "Fetch the keys of all existing objects before the loop: `keys ="
        ' set(Model.objects.filter(field__in=[...]).values_list("field", flat=True))`. Or'
        " annotate the parent query:"
        ' `.annotate(has_any=Exists(Model.objects.filter(field=OuterRef("pk"))))`.'
    ),
    ("django", "get_or_create"): (
        "Fetch the existing objects before the loop with one `.filter(field__in=[...])`, and"
        " create the others with one `bulk_create(objects, ignore_conflicts=True)`."
    ),
    ("django", "update_or_create"): (
        "Write all objects with one `bulk_create(objects, update_conflicts=True,"
        " update_fields=[...], unique_fields=[...])`."
    ),
    ("django", "__getitem__"): (
        "An index on a queryset that is not loaded executes a query each time. Loop over the"
        " queryset, or load it once before the loop: `objects = list(queryset)`."
    ),
    ("sqlalchemy", "merge"): (
        "Write all rows with one statement: `insert(Model).on_conflict_do_update(...)` of"
        " `sqlalchemy.dialects.sqlite` or `.postgresql`, executed with a list of rows. Loading all"
        " objects before the loop avoids only the queries that load them one by one."
    ),
    ("sqlalchemy", "refresh"): (
        "Leave out `refresh()` if you need no value that the database computed (a default, a"
        " trigger). `Session(expire_on_commit=False)` keeps the other values after a commit. To see"
        " other transactions' changes, load all of them again with one `select(Model)` and"
        " `.execution_options(populate_existing=True)`."
    ),
    ("sqlalchemy", "_load_expired"): (
        "A commit expired these objects, and the session loads each object again. Keep their values"
        " with `Session(expire_on_commit=False)`, or commit after the loop."
    ),
}
"""The fix for a repeated call, by library and function name."""


NOT_SELECTED = (
    "The query of the loop's objects does not select these columns of a subclass, and SQLAlchemy"
    ' loads them for each object. Select them with `with_polymorphic(Model, "*")`, or load them'
    " at once with `.options(selectin_polymorphic(Model, [Subclass, ...]))`."
)


DELETED = {
    "sqlalchemy": (
        "`session.delete()` first loads the related objects, to delete them. Let the database"
        " delete them: `relationship(..., passive_deletes=True)` with `ForeignKey(..., ondelete="
        '"CASCADE")`, and `PRAGMA foreign_keys = ON` on SQLite. Or delete the rows of both tables'
        " with one `delete(Model).where(...)` each."
    ),
}
"""How to delete objects without loading their related objects, by library."""

CASCADES = frozenset({("sqlalchemy", "_delete_impl")})
"""Library functions that load related objects to delete them: library and function name."""


def cascade_advice(library: str, calls: Iterable[str]) -> str:
    """Return how to delete related objects without loading them; "" if no call deletes objects."""
    is_delete = any((library, one) in CASCADES for one in calls)
    return DELETED[library] if is_delete else ""


def subclass_columns_advice(library: str, statement: str) -> str:
    """Return how to load columns of a subclass with its query; "" if the statement does not load
    such columns. SQLAlchemy loads them by `WHERE ? = child.id`, and other columns by
    `WHERE model.id = ?`.
    """
    compared = comparisons_of(statement)
    is_turned = [[one.kind for one in each.left] for each in compared] == [["parameter"]]
    return NOT_SELECTED if library == "sqlalchemy" and is_turned else ""


PARSERS = frozenset({"read_csv", "read_csv_auto", "read_json", "read_json_auto", "sniff_csv"})
"""DuckDB's functions that parse a text file
(https://duckdb.org/docs/stable/data/csv/overview.html).
"""

PARSED_ONCE = (
    "Each execution reads and parses the file again. Load it once (`CREATE TABLE t AS SELECT * FROM"
    " read_csv(...)`), and query the table; or compute the values of all items with one GROUP BY."
)


def statement_advice(library: str, statement: str) -> str:
    """Return the fix for a repeated statement if the SQL text shows the cause, or ""."""
    if PARSERS & {*functions_in(tokens_of(statement))}:
        return PARSED_ONCE
    return subclass_columns_advice(library, statement)


def batched_call_advice(library: str, calls: Iterable[str]) -> str:
    """Return how to make the call once for all objects; "" if no call is in FIXES."""
    return next(filter(None, (FIXES.get((library, one), "") for one in calls)), "")


GROUPED = {
    "django": (
        "Compute it in the parent query: `.annotate(value={Name}({of}))`, with"
        " `filter=Q(...)` if it is filtered. Or compute it in Python from what"
        " `.prefetch_related()` loaded."
    ),
    "sqlalchemy": (
        "Compute it for all objects with one `select(Model.key,"
        " func.{name}({column})).group_by(Model.key)`, and look it up in a dict."
    ),
    "peewee": (
        "Compute it for all objects with one `Model.select(Model.key,"
        " fn.{NAME}({column})).group_by(Model.key).tuples()`, and look it up in a dict."
    ),
    "pony": (
        "Compute it for all objects with one `select((e.key, {name}({value})) for e in"
        " Entity)`, and look it up in a dict."
    ),
}
"""How to compute values of related rows for many objects at once."""


def grouped_aggregate_advice(library: str, function: str) -> str:
    """Return how to compute an SQL aggregate function for many objects at once; "" if the library
    is unknown. The function's name is in lower case.
    """
    is_count = function == "count"
    return GROUPED.get(library, "").format(
        name=function,
        Name=function.capitalize(),
        NAME=function.upper(),
        of='"relation"' if is_count else '"relation__field"',
        column=("Model.id" if library == "peewee" else "") if is_count else "Model.column",
        value="e" if is_count else "e.attribute",
    )
