"""The texts of fixes for table scans."""

from __future__ import annotations

from collections.abc import Sequence

from queryprof.analysis.units import average
from queryprof.findings.finding import first_text_if_true
from queryprof.findings.groups import StatementGroup
from queryprof.findings.selectivity import MANY_RETURNED
from queryprof.planner.facts import IndexHelp
from queryprof.sql.clauses import comparisons_of
from queryprof.sql.operands import functions_in
from queryprof.sql.tokens import Token, tokens_of

IN_JSON = (
    "The query compares a value inside JSON, which SQLite extracts from each row. Keep that value"
    " in a column of its own, or in a generated column, with an index (Django: a field with"
    " db_index=True). An index on the expression helps only if the SQL contains"
    " the JSON path as a literal, not as a parameter."
)


OPTIONAL = (
    "A condition such as (? IS NULL OR column = ?) keeps SQLite from searching an index on the"
    " column: SQLite plans before it knows the parameter. Add a condition to WHERE only if it has a"
    " value."
)
EXCLUDED = (
    "The query excludes a list of values: SQLite reads each excluded row, and the program sends the"
    " whole list. To read the next rows, compare with the last key instead: WHERE id > ? ORDER BY"
    " id."
)
FEW_LENGTHS = 10
STORED = (
    "SQLite calls {name}(), which the program registered, for each row that it reads. Store the"
    " result in a column of its own when you write a row, and create an index on that column."
)
CALLED = (
    "SQLite calls {name}(), which the program registered, for each row. Let other conditions choose"
    " few rows first, or call it in Python only for the rows that you need."
)


MANY_TABLES = 5
"""If a view combines at least this many tables, an index on each of them is not good advice."""

UNITED = (
    "The query reads {tables} tables through a view with UNION ALL. Query only the table that you"
    " need, with an index on the compared columns. Or read all rows once, before the loop, and look"
    " them up in a dict."
)


DATE_RANGE = (
    "Django's `__date` calls a Python function for each row. Filter by a range instead:"
    " `.filter(field__gte=start, field__lt=start + timedelta(days=1))`. SQLite can then use an"
    " index on the column."
)


def store_function_result_advice(statement: str, index_help: IndexHelp) -> str:
    """Return advice to store the result of the program's function that a statement compares, or to
    avoid Django's date function; "" if there is no such function, or if it takes a parameter.
    """
    sides = [side for one in comparisons_of(statement) for side in (one.left, one.right)]
    fixes = (function_call_advice(side, index_help.functions) for side in sides)
    return next((one for one in fixes if "Store the result" in one or one == DATE_RANGE), "")


def function_call_advice(operand: Sequence[Token], functions: Sequence[str]) -> str:
    """Return how to avoid calling a function of the program in a comparison; "" if the operand has
    none.
    """
    name = next((one for one in functions_in(operand) if one in functions), "")
    if name == "django_datetime_cast_date":  # made by Django for __date
        return DATE_RANGE
    is_stored = not any(token.kind in ("parameter", "text") for token in operand)
    return (STORED if is_stored else CALLED).format(name=name) if name else ""


def joined_rows_in_words(needed: float, returned: float) -> str:
    if needed < MANY_RETURNED * max(returned, 1):
        return ""
    return f", computed from about {average(needed)} rows"


def index_fix(
    group: StatementGroup, index_help: IndexHelp | None, columns: str, is_unknown: bool
) -> str:
    if columns and index_help and index_help.by_reference:
        several = (
            "indexes on the compared columns, and"
            if index_help.code.count("CREATE") > 1
            else "an index"
        )
        return (
            f"Create {several} on the referring column ({columns}): the foreign key searches the"
            " rows that refer to each changed or deleted row."
        )
    if columns and is_unknown and not (index_help and index_help.covering):
        return (
            f"An index on the compared columns ({columns}) helps if few rows have the same value."
            " --prove measures how much time the index saves."
        )
    if columns:
        several = "indexes" if index_help and index_help.code.count("CREATE") > 1 else "an index"
        measure = (
            " The query still reads another table completely: let --prove measure it."
            if index_help and index_help.still_scans
            else ""
        )
        return f"Create {several} on the compared columns: {columns}.{measure}"
    if index_help is None:
        return "Create an index on the compared columns."
    if index_help.functions:
        stored = store_function_result_advice(group.statement, index_help)
        return stored or CALLED.format(name=index_help.functions[0])
    return first_text_if_true(
        (excludes_growing_list(group), EXCLUDED),
        (reads_json(group.statement), IN_JSON),
        (has_optional_condition(group.statement), OPTIONAL),
        (True, index_help.without_index),
    )


def united_tables_advice(group: StatementGroup) -> str:
    """Return advice for a statement that scans many tables through a view; "" for others."""
    if any(token.keyword == "UNION" for token in tokens_of(group.statement)):
        return ""  # the statement itself combines the tables
    steps = [step.strip() for plan in group.plans for step in plan]
    scanned = {step.partition(" ")[2] for step in steps if step.startswith("SCAN ")}
    is_through_view = "UNION ALL" in steps and len(scanned) >= MANY_TABLES
    return UNITED.format(tables=len(scanned)) if is_through_view else ""


def excludes_growing_list(group: StatementGroup) -> bool:
    """Return whether a statement excludes a list of values whose length changes."""
    return group.texts >= FEW_LENGTHS and excludes_list(group.statement)


def excludes_list(statement: str) -> bool:
    """Return whether a statement excludes a list of values, as in `id NOT IN (?)` or
    `NOT (id IN (?))`.
    """
    tokens = tokens_of(statement)
    for number, token in enumerate(tokens):
        after = tokens[number + 1 : number + 3]
        is_list = [one.kind for one in after[1:]] == ["parameter"] and after[0].text == "("
        if token.keyword != "IN" or not is_list:
            continue
        before = number - 1
        while before > 0 and (tokens[before].text == "." or tokens[before].named):
            if tokens[before].keyword == "NOT":
                return True
            before -= 1
        if [one.text.upper() for one in tokens[max(0, before - 1) : before + 1]] == ["NOT", "("]:
            return True
    return False


def has_optional_condition(statement: str) -> bool:
    """Return whether a statement has a condition that a parameter switches off, such as
    `(? IS NULL OR name = ?)`.
    """
    tokens = tokens_of(statement)
    return any(
        first.kind == "parameter" and [one.keyword for one in others] == ["IS", "NULL", "OR"]
        for first, *others in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False)
    )


def reads_json(statement: str) -> bool:
    """Return whether a statement reads values inside JSON. Columns could store such values."""
    return any(one.upper().startswith("JSON") for one in functions_in(tokens_of(statement)))


OF_DJANGO = "django_"
"""The start of the names of the functions that Django adds to SQLite
(https://docs.djangoproject.com/en/5.2/ref/databases/#sqlite-notes).
"""


def plain_column_advice(operand: Sequence[Token]) -> str:
    """Return how to avoid a function around a column."""
    if any(name.startswith(OF_DJANGO) for name in functions_in(operand)):
        return (
            "Compare the column itself: filter by a range, such as"
            " `.filter(time__gte=start, time__lt=end)` instead of `time__date`. No index can be"
            " created on the expression, because the function exists only in Django."
        )
    return "Compare the column itself, or create an index on the compared expression."
