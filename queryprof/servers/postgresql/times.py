"""Find the rows of pg_stat_statements that belong to recorded statements.

(https://www.postgresql.org/docs/current/pgstatstatements.html)

A statement may have several rows, because its identifier depends on the parameters' types and
positions in the text. A driver chooses the types by the values (psycopg sends small integers as
int2). A row therefore belongs to a statement if the row has the identifier of the statement's plan,
or the statement's text without values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from queryprof.model.postgresql import ServerPlan, ServerTime
from queryprof.servers.postgresql.numbered import number_parameters
from queryprof.sql.tokens import tokens_of

VALUE = "?"


def times_by_statement(
    plans: Mapping[str, ServerPlan], rows: Iterable[tuple[int | None, str | None, int, float]]
) -> dict[str, ServerTime]:
    """Return the server's times by statement. Statements without rows are missing.

    Args:
        rows: rows of pg_stat_statements: identifier, text, calls, total time in ns.
    """
    by_id: dict[int, set[str]] = defaultdict(set)
    by_text: dict[str, set[str]] = defaultdict(set)
    for statement, plan in plans.items():
        if plan.query_id is not None:
            by_id[plan.query_id].add(statement)
        by_text[tokens_without_values(statement)].add(statement)
    calls: dict[str, int] = defaultdict(int)
    times_ns: dict[str, float] = defaultdict(float)
    for query_id, text, number, time_ns in rows:
        same = by_text.get(tokens_without_values(text), set()) if text else set()
        for statement in by_id.get(query_id or 0, set()) | same:
            calls[statement] += number
            times_ns[statement] += float(time_ns)
    return {
        statement: ServerTime(number, times_ns[statement] / number)
        for statement, number in calls.items()
        if number
    }


def tokens_without_values(statement: str) -> str:
    """Return a statement's tokens, with each value or list of values replaced by VALUE."""
    text = number_parameters(statement)
    found: list[str] = []
    for token in tokens_of(text[0] if text else statement):
        is_value = token.kind in ("text", "number") or (
            token.kind == "parameter" and token.text[0] in "$?"
        )
        word = VALUE if is_value else token.text if token.kind == "name" else token.text.lower()
        is_listed = word == VALUE and found[-2:] == [VALUE, ","]
        if is_listed:
            found.pop()
        else:
            found.append(word)
    return " ".join(found)
