"""The wording of a scan's fix."""

from __future__ import annotations

from queryprof.analysis.findings.groups import Group
from queryprof.analysis.findings.planning import Served
from queryprof.analysis.findings.selectivity import MANY_RETURNED
from queryprof.analysis.units import average
from queryprof.sql.clauses import functions_in
from queryprof.sql.tokens import tokens_of

IN_JSON = (
    "It compares a value inside of JSON, which is taken out of each row. Keep that value in a"
    " column of its own, or in a generated one, with an index (Django: a field with"
    " db_index=True). An index on the expression serves only where the path is in the text."
)


def made_of(needed: float, returned: float) -> str:
    return (
        f", made of about {average(needed)}" if needed >= MANY_RETURNED * max(returned, 1) else ""
    )


def index_fix(group: Group, served: Served | None, columns: str, is_unknown: bool) -> str:
    if columns and served and served.by_reference:
        several = (
            "indexes on what it compares, and" if served.code.count("CREATE") > 1 else "an index"
        )
        return (
            f"Create {several} on the column that refers ({columns}): the foreign key looks for"
            " rows that refer to each row that the statement changes or deletes."
        )
    if columns and is_unknown and not (served and served.covering):
        return (
            f"An index on what it compares ({columns}) wins where few rows have one value of it:"
            " --prove measures."
        )
    if columns:
        several = "indexes" if served and served.code.count("CREATE") > 1 else "an index"
        measure = (
            " It still reads more from end to end: let --prove measure it."
            if served and served.still_scans
            else ""
        )
        return f"Create {several} on what it compares: {columns}.{measure}"
    if served is None:
        return "Create an index on the columns that it compares."
    called = functions_in(tokens_of(group.statement))
    return (
        IN_JSON if any(one.upper().startswith("JSON") for one in called) else served.without_index
    )
