"""The libraries that a program executes SQL with, and how to write a fix with each of them.

A note is a library's description of a statement, such as "lazy load of Order.lines".
"""

from __future__ import annotations

from queryprof.analysis.library_frames import (
    COLUMN,
    DRIVERS,
    LAZY,
    MANY,
    PASS_THROUGH_LIBRARIES,
)
from queryprof.sql.clauses import comparisons_of
from queryprof.sql.operands import operand_column


def is_unknown_library(library: str) -> bool:
    """Return whether this module has no advice for a package that writes its own statements."""
    return bool(library) and library not in {*DRIVERS, *PASS_THROUGH_LIBRARIES, *ONE_TRANSACTION}


ONE_TRANSACTION = {
    "django": "Put `with transaction.atomic():` around {what}.",
    "sqlalchemy": (
        "Commit once: `with session.begin():` (Core: `engine.begin()`) around {what}, or one"
        " `session.commit()` after it."
    ),
    "peewee": "Put `with db.atomic():` around {what}.",
    "pony": "Put one `with db_session:` around {what}.",
    "sqlite_utils": (
        "Put `with db.atomic():` around the calls. Otherwise each call commits by itself, even"
        " inside `with` of the connection, and `insert_all()` and `upsert_all()` commit each batch"
        " (batch_size)."
    ),
    "diskcache": "Put `with cache.transact():` around {what}.",
    "dataset": "Put `with db:` around {what}.",
    "tortoise": "Put `async with in_transaction():` around {what}.",
}
"""How to put many writes into one transaction."""

EXPIRES = {
    "sqlalchemy": (
        " Without `Session(expire_on_commit=False)`, each commit expires all objects, and their"
        " next use reads them again."
    )
}
"""By library: advice about a further cost of each commit."""

ROWS_AT_ONCE = {
    "django": " Or create all objects with one `Model.objects.bulk_create(objects)`.",
    "sqlalchemy": " For similar rows: `session.execute(insert(Model), rows)`.",
    "peewee": " Or insert all rows with one `Model.insert_many(rows)`.",
    "dataset": " Or insert all rows with one `insert_many(rows)`.",
    "tortoise": " Or create all objects with one `await Model.bulk_create(objects)`.",
}
"""How to replace many INSERTs with one statement."""

SEVERAL = "several labels"
"""The note of a statement that got different labels (statement_labels.c)."""

IN_TEMPLATE = " in template "
"""The words before a template's name in a note."""

PRELOADS = frozenset(
    {"prefetch_related_objects", "SelectInLoader", "_SelectInLoader", "SubqueryLoader"}
)
"""Functions and classes of ORMs that load data together with an earlier query."""

AUTOFLUSH = "Session._autoflush"
"""SQLAlchemy's function that writes new and changed objects before a query."""

NO_AUTOFLUSH = (
    " Each query first writes the session's new and changed objects (autoflush). Query before you"
    " add or change objects, or use `with session.no_autoflush:`."
)

NOTE_LIBRARIES = frozenset({"django", "sqlalchemy"})
"""ORMs whose statements have notes about templates and lazy loads."""


def note_without_reader(note: str) -> str:
    """Return a note without the template or serializer that reads the attribute."""
    return note.partition(" in ")[0]


BOTH = "together with the parent query"
"""Words in the fix of a nested lazy load. That fix also loads the data of the outer lazy load."""


def owner_in_lazy_note(note: str) -> str:
    """Return the class that owns the attribute in a note of a lazy load."""
    named = note.removeprefix(LAZY).partition(" in ")[0].removeprefix(MANY).removeprefix(COLUMN)
    return named.rpartition(".")[0]


CLASS_SUFFIXES = ("model", "entity", "record", "orm", "table", "row")
"""Words at the end of class names that table names leave out, as in TrialModel and trials."""


def is_table_of_class(table: str, owner: str) -> bool:
    """Return whether a table's name ends with a class's name, perhaps in the plural, as ORMs name
    tables.
    """
    name, of_class = table.replace("_", ""), owner.lower().replace("_", "")
    if name.endswith(_plurals(of_class)):
        return bool(of_class)
    stems = [of_class.removesuffix(one) for one in CLASS_SUFFIXES if of_class.endswith(one)]
    return any(stem and name.endswith(_plurals(stem)) for stem in stems)


def _plurals(word: str) -> tuple[str, ...]:
    return word, f"{word}s", f"{word}es", f"{word.removesuffix('y')}ies"


def preload_advice(library: str, note: str, outer: str = "", is_of_owner: bool = True) -> str:
    """Return how to load related data of all objects at once.

    Args:
        outer: the note of the statement that loads the objects and also runs in a loop; "" if there
            is none.
        note: "lazy load of Order.lines", or another note of a library. The note has "all" before
            the class if the attribute holds many objects, and "column" if the attribute is a value.
            It may end with the template or serializer that reads the attribute.
        is_of_owner: True if the parent query loads objects of the note's class, False if it loads
            objects of another class.
    """
    loaded, _, place = note.removeprefix(LAZY).partition(" in ")
    relation = loaded.removeprefix(MANY).removeprefix(COLUMN)
    attribute = relation.rpartition(".")[2]
    around = outer.removeprefix(LAZY).removeprefix(MANY).partition(" in ")[0]
    if around and not loaded.startswith(COLUMN) and library in ("django", "sqlalchemy"):
        how = f"`.options(selectinload({around}).selectinload({relation}))`"
        if library == "django":
            how = f'`.prefetch_related("{around.rpartition(".")[2]}__{attribute}")`'
        return f"Load {around} and {relation} {BOTH}: {how}."
    how = f"`.options(selectinload({relation}))`, or `joinedload()`"
    path = "" if is_of_owner else "PATH__"
    if not is_of_owner:
        how = f"`.options(PATH.selectinload({relation}))`"
    if library == "django":
        how = f'`.select_related("{path}{attribute}")`'
        if loaded.startswith(MANY):
            how = f'`.prefetch_related("{path}{attribute}")`'
        if loaded.startswith(COLUMN):
            how = "list it in `.only()`, or remove it from `.defer()`"
    if "PATH" in how:
        model = relation.rpartition(".")[0]
        how += f". Replace PATH by the relations from the parent query's objects to {model}"
    where = f" {place} reads it." if place else ""
    return f"Load {relation} with the parent query: {how}.{where}"


ONE_INSERT = {
    "django": (
        "Create all objects with one `Model.objects.bulk_create(objects)`. It sends no signals"
        " and does not call `save()`. If rows may already exist, add `ignore_conflicts=True`."
    ),
    "sqlalchemy": (
        "Insert all rows with one `session.execute(insert(Model), rows)`, with a dict per"
        " row. Or call neither `flush()` nor `commit()` in the loop: the session then inserts many"
        " at once."
    ),
    "peewee": (
        "Insert all rows with one `Model.insert_many(rows).execute()`, or"
        " `Model.bulk_create(objects)`. If rows may already exist, add `.on_conflict_ignore()`."
    ),
    "sqlite_utils": "Insert all rows with one `db[table].insert_all(rows)`.",
    "dataset": "Insert all rows with one `table.insert_many(rows)`.",
}
"""How to insert many rows at once."""

ONE_CHANGE = {
    "django": (
        'Change all objects with one `.update(field=F("field") + ...)` of a query. It sends no'
        " signals and does not call `save()`. If Python computes the values, pass all rows to one"
        ' `connection.cursor().executemany("UPDATE ...", rows)`. On SQLite, `bulk_update()` takes'
        " as long as `save()` of each. `save(update_fields=[...])` writes only these fields."
    ),
    "sqlalchemy": (
        "Change all rows with one `session.execute(update(Model).where(...).values(...))` or"
        " `delete(...)`. If Python computes the values, use `session.execute(update(Model),"
        " rows)`, with a dict per row that has its primary key."
    ),
    "peewee": (
        "Change all rows with one `Model.update(...).where(...).execute()` or"
        " `Model.delete()`. If Python computes the values, use `Model.bulk_update(objects,"
        " fields=[...])`."
    ),
}
"""How to change many rows at once."""

ONE_DELETE = {
    "django": (
        "Delete all objects with one `.delete()` of a query. It sends the signals of each object,"
        " but does not call the model's `delete()`."
    ),
}
"""How to delete many rows at once, if the advice differs from ONE_CHANGE."""

FIRST_PER_PARENT_FIXES = {
    "django": (
        "Fetch the first related row of each object with the parent query:"
        " `.annotate(first=Subquery(query[:1]))`, or filter on"
        " `Window(RowNumber(), partition_by=...)`."
    ),
}
"""How to find the first related row of many objects at once."""

ONE_QUERY = {
    "django": (
        "Load it with the parent query: `.select_related()` for a single related object,"
        " `.prefetch_related()` for many or for a generic foreign key. Or use one"
        " `filter(field__in=[...])`."
    ),
    "sqlalchemy": (
        "Load it with the parent query: `.options(selectinload(Model.relation))`. Or use one"
        " `select(Model).where(Model.id.in_([...]))`."
    ),
    "peewee": (
        "Join it into the parent query: `Model.select(Model, Other).join(Other)`. Or use"
        " `prefetch(query, Other)`."
    ),
    "pony": (
        "Load it with the parent query: `query.prefetch(Entity.relation)`. Or use one `select(e"
        " for e in Entity if e.key in keys)`."
    ),
    "tortoise": (
        'Load it with the parent query: `.select_related("relation")` for a single related object,'
        ' `.prefetch_related("relation")` for many. Then read `object.relation`, because'
        " `object.relation.all()` queries again. Or use one `filter(field__in=[...])`."
    ),
}
"""How to replace a query per object with one query."""

NO_OBJECTS = {
    "django": (
        'Read only the columns that you need: `.values_list("column")`, or `.only("column")` for'
        " objects. Let the database compute counts (`.count()`), existence (`.exists()`), distinct"
        " values (`.distinct()`) and sums (`.aggregate()`)."
    ),
    "sqlalchemy": (
        "Read only the columns that you need: `select(Model.column)`, or"
        " `.options(load_only(...))` for objects. Let the database compute counts"
        " (`func.count()`), distinct values and sums."
    ),
    "peewee": (
        "Read only the columns that you need: `Model.select(Model.column).tuples()`. Let the"
        " database compute counts (`.count()`), distinct values (`.distinct()`) and sums"
        " (`fn.SUM()`)."
    ),
    "pony": (
        "Read only the attributes that you need: `select(e.attribute for e in Entity)`. Let the"
        " database compute counts and sums (`count()`, `sum()`)."
    ),
    "tortoise": (
        'Read only the columns that you need: `.values_list("column")`, or `.only("column")` for'
        " objects. Let the database compute counts (`.count()`) and existence (`.exists()`)."
    ),
}
"""How to make a query create fewer objects, or none."""

NO_RELATION = {
    "django": "Remove the relation from `prefetch_related()` if its objects are not needed.",
    "sqlalchemy": (
        "The parent query loads this relation with each object. If you do not need it:"
        ' `.options(lazyload(Model.relation))`, or `lazy="select"` in the model.'
    ),
}
"""How to avoid creating objects that an ORM loads with each object of a parent query."""

MANY_AT_ONCE = {
    "django": (
        "with one `filter(field__in=[...])`. If the loop iterates over a query's rows, load the"
        " related objects with that query: `.select_related()` for a single one,"
        " `.prefetch_related()` for many."
    ),
    "sqlalchemy": (
        "with one `select(Model).where(Model.id.in_([...]))`. If the loop iterates over a query's"
        " rows, load the related objects with that query: `.options(selectinload(Model.relation))`."
    ),
    "peewee": (
        "with one `Model.select().where(Model.id.in_([...]))`. If the loop iterates over a query's"
        " rows, load the related objects with that query: `.join(Other)`, or"
        " `prefetch(query, Other)`."
    ),
    "pony": (
        "with one `select(e for e in Entity if e.id in ids)`. If the loop iterates over a query's"
        " rows, load the related objects with that query: `query.prefetch(Entity.relation)`."
    ),
    "tortoise": (
        "with one `Model.filter(field__in=[...])`. If the loop iterates over a query's rows, load"
        " the related objects with that query: `.select_related()` for a single one,"
        " `.prefetch_related()` for many."
    ),
}
"""How to replace a query per object with one query if the parent query is unknown."""


def with_compared_column(advice: str, statement: str) -> str:
    """Return the advice of MANY_AT_ONCE with the name of the column that a statement compares, if
    the statement compares exactly one column.
    """
    found = [
        operand_column(operand)
        for one in comparisons_of(statement)
        if (one.clause, one.operator) == ("WHERE", "=")
        for operand in (one.left, one.right)
    ]
    columns = set(filter(None, found))
    if len(columns) != 1:
        return advice
    (column,) = columns
    named = advice.replace("Model.id.in_", f"Model.{column}.in_")
    return named.replace("field__in", f"{column}__in").replace("e.id in ids", f"e.{column} in ids")
