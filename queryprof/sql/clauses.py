"""Find the clauses and comparisons of a statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from queryprof.sql.operands import is_at, operand_column, without_parentheses
from queryprof.sql.tokens import Token, cache_by_statement, first_token, tokens_of

VERBS = frozenset({"SELECT", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"})
"""Verbs that may follow WITH."""

READS = frozenset({"SELECT", "WITH", "VALUES"})
WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})

BEFORE_ROWS = frozenset({"FROM", "JOIN", "AS", "MATERIALIZED"})
"""Keywords before a parenthesized query whose rows become the statement's rows. All other
subqueries only provide a value.
"""

AGGREGATES = frozenset(
    {
        "COUNT",
        "SUM",
        "TOTAL",
        "AVG",
        "MAX",
        "MIN",
        "GROUP_CONCAT",
        "STRING_AGG",
        "JSON_GROUP_ARRAY",
        "JSON_GROUP_OBJECT",
    }
)
"""Aggregate functions. Aggregate functions that the program defines itself are unknown here (see
IndexHelp.is_aggregate).
"""

COMPARES = frozenset(
    {"=", "==", "<", ">", "<=", ">=", "<>", "!=", "IN", "LIKE", "GLOB", "IS", "BETWEEN"}
)
CHOOSING = frozenset({"WHERE", "ON"})
NON_FILTER_CLAUSES = frozenset(
    {
        "SELECT",
        "FROM",
        "JOIN",
        "GROUP",
        "ORDER",
        "HAVING",
        "LIMIT",
        "SET",
        "RETURNING",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "VALUES",
        "WINDOW",
    }
)
AROUND_OPERANDS = frozenset(
    {
        *COMPARES,
        *CHOOSING,
        *NON_FILTER_CLAUSES,
        "AND",
        "OR",
        "NOT",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "ESCAPE",
        "BY",
        "ASC",
        "DESC",
        "NULLS",
        "LEFT",
        "INNER",
        "CROSS",
        "NATURAL",
        "USING",
        ",",
        ";",
    }
)
MAX_DEPTH = 40
"""Maximum depth of parentheses around a comparison. Deeper comparisons are skipped, because the
operands of every outer comparison would repeat them.
"""


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a statement.

    Attributes:
        chooses: whether any query in the statement has WHERE. groups, orders, limits, skips:
            whether a query whose rows become the statement's rows has GROUP BY, ORDER BY, LIMIT or
            OFFSET.
        adds_up: whether the statement calls a function of AGGREGATES, which reads all rows.
        changed: the table to which the statement writes, in lower case; "" for none.
    """

    chooses: bool
    groups: bool
    orders: bool
    limits: bool
    skips: bool
    adds_up: bool
    changed: str


@dataclass(frozen=True, slots=True)
class ComparedOperands:
    """A comparison of two operands, or an assignment in SET (a column and its value).

    Attributes:
        clause: the keyword of the clause: WHERE, ON, SET, ...
        tokens: the tokens of the whole statement.
        left_range, right_range: ranges of the operands in `tokens`.
    """

    clause: str
    operator: str
    tokens: tuple[Token, ...]
    left_range: slice
    right_range: slice

    @property
    def left(self) -> tuple[Token, ...]:
        return self.tokens[self.left_range]

    @property
    def right(self) -> tuple[Token, ...]:
        return self.tokens[self.right_range]


@cache_by_statement
def clauses_of(statement: str) -> Clauses:
    """Return the clauses of a statement."""
    tokens = tokens_of(statement)
    found: set[str] = set()
    queries = [True]
    limit_depth = -1
    before = ""
    for token in tokens:
        mark = token.keyword or token.text
        if mark == "(":
            queries.append(queries[-1] and before in BEFORE_ROWS)
            found |= {"ADDS UP"} if before in AGGREGATES else set()
        elif mark == ")":
            del queries[max(1, token.depth + 1) :]
            limit_depth = limit_depth if limit_depth <= token.depth else -1
        elif mark == "WHERE" or (queries[-1] and mark in ("GROUP", "ORDER", "LIMIT")):
            found.add(mark)
            limit_depth = token.depth if mark == "LIMIT" else limit_depth
        elif mark in ("OFFSET", ",") and token.depth == limit_depth:
            found.add("OFFSET")
        before = mark
    return Clauses(
        chooses="WHERE" in found,
        groups="GROUP" in found,
        orders="ORDER" in found,
        limits="LIMIT" in found,
        skips="OFFSET" in found,
        adds_up="ADDS UP" in found,
        changed=_changed_table(_from_verb(tokens)),
    )


def verb_of(statement: str) -> str:
    """Return a statement's verb in capitals, after any WITH clause. Return "WITH" if no known verb
    follows, and "" for an empty statement.
    """
    first = first_token(statement)
    if first is None or first.keyword != "WITH":
        return first.keyword if first else ""
    return next((token.keyword for token in _from_verb(tokens_of(statement))), "WITH")


def pragma_name(statement: str) -> str:
    """Return the name of the pragma in lower case, without a schema; "" for other statements."""
    tokens = tokens_of(statement)[:4]
    if not tokens or tokens[0].keyword != "PRAGMA":
        return ""
    has_schema = len(tokens) > 3 and tokens[2].text == "."
    return tokens[3 if has_schema else 1].named if len(tokens) > 1 else ""


def is_checkpoint(statement: str) -> bool:
    return pragma_name(statement) == "wal_checkpoint"


def is_single_statement(statement: str) -> bool:
    """Return whether a text is a single statement, without another statement after a semicolon."""
    tokens = tokens_of(statement)
    return not any(token.text == ";" and token.depth == 0 for token in tokens[:-1])


def _from_verb(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens outside of parentheses, starting with the verb."""
    outside = [token for token in tokens if token.depth == 0]
    if not is_at(outside, 0, "WITH"):
        return outside
    places = (place for place, token in enumerate(outside) if token.keyword in VERBS)
    return outside[next(places, len(outside)) :]


@cache_by_statement
def has_list(statement: str) -> bool:
    """Return whether a statement compares with a list of values. Normalized statements have the
    texts IN (?) and VALUES (?, ?) for lists of any length.
    """
    tokens = tokens_of(statement)
    is_insert = verb_of(statement) in ("INSERT", "REPLACE")
    for place, token in enumerate(tokens):
        if token.keyword == "VALUES" and (not is_insert or is_at(tokens, place - 2, "IN")):
            return True
        inside = tokens[place + 2 : place + 3]
        is_list = token.keyword == "IN" and bool(inside) and inside[0].kind == "parameter"
        if is_list and is_at(tokens, place + 3, ")"):
            return True
    return False


def changed_schema(statement: str) -> str:
    """Return the schema before the name of the table to which a statement writes, in lower case;
    "" without one.
    """
    outside = _from_verb(tokens_of(statement))
    place = _place_of_changed_table(outside)
    return outside[place].named if is_at(outside, place + 1, ".") else ""


def _changed_table(outside: Sequence[Token]) -> str:
    """Return the table to which a statement writes. `outside` has its tokens from the verb on."""
    if not outside or outside[0].keyword not in WRITES:
        return ""
    place = _place_of_changed_table(outside)
    place += 2 * is_at(outside, place + 1, ".")
    return outside[place].named if len(outside) > place else ""


def _place_of_changed_table(outside: Sequence[Token]) -> int:
    """Return the index of the first token of the name of the table to which a statement writes."""
    return (1 if is_at(outside, 0, "UPDATE") else 2) + 2 * is_at(outside, 1, "OR")


def comparisons_of(statement: str) -> tuple[ComparedOperands, ...]:
    """Return the comparisons of WHERE and ON in all queries of a statement."""
    return tuple(one for one in all_comparisons_of(statement) if one.clause in CHOOSING)


@cache_by_statement
def all_comparisons_of(statement: str) -> tuple[ComparedOperands, ...]:
    """Return the comparisons and assignments in all clauses of a statement."""
    return tuple(_find_comparisons(tokens_of(statement)))


def _find_comparisons(tokens: tuple[Token, ...]) -> Iterator[ComparedOperands]:
    clauses = [""]
    partners = _matching_parentheses(tokens)
    for place, token in enumerate(tokens):
        mark = token.keyword or token.text
        if mark == "(":
            clauses.append(clauses[-1])
        elif mark == ")":
            del clauses[max(1, token.depth + 1) :]
        elif mark in CHOOSING | NON_FILTER_CLAUSES:
            clauses[-1] = "CONFLICT" if is_at(tokens, place + 1, "CONFLICT") else mark
        elif mark in COMPARES and token.depth <= MAX_DEPTH:
            left = place - 1 - is_at(tokens, place - 1, "NOT")
            right = place + 1 + is_at(tokens, place + 1, "NOT")
            yield ComparedOperands(
                clauses[-1],
                mark,
                tokens,
                slice(_operand_end(tokens, partners, left, -1) + 1, left + 1),
                slice(right, _operand_end(tokens, partners, right, 1)),
            )


def sort_terms(statement: str) -> Iterator[tuple[Token, ...]]:
    """Yield the terms of ORDER BY and GROUP BY."""
    tokens = tokens_of(statement)
    partners = _matching_parentheses(tokens)
    for start, token in enumerate(tokens):
        is_list = token.keyword in ("ORDER", "GROUP") and is_at(tokens, start + 1, "BY")
        if not is_list or token.depth > MAX_DEPTH:
            continue
        place = start + 2
        while term := tokens[place : _operand_end(tokens, partners, place, 1)]:
            yield term
            place += len(term)
            place += is_at(tokens, place, "ASC") or is_at(tokens, place, "DESC")
            if not is_at(tokens, place, ","):
                break
            place += 1


@cache_by_statement
def first_table(statement: str) -> str:
    """Return the first name after FROM, in lower case, or ""."""
    pairs = pairwise(tokens_of(statement))
    return next((name.named for word, name in pairs if word.keyword == "FROM" and name.named), "")


def selected_columns(statement: str) -> tuple[str, ...]:
    """Return the names of the plain columns that a SELECT returns, in lower case."""
    tokens = tokens_of(statement)
    end = next((at for at, one in enumerate(tokens) if one.keyword == "FROM"), 0)
    return tuple(
        one.named
        for one, after in pairwise(tokens[: end + 1])
        if one.named and (after.text == "," or after.keyword == "FROM")
    )


def tables_by_alias(statement: str) -> dict[str, str]:
    """Map each name to the word before it, which may be the table that the name is an alias for."""
    tokens = [token for token in tokens_of(statement) if token.keyword != "AS"]
    return {
        second.named: first.named
        for first, second in pairwise(tokens)
        if first.named and second.named and first.keyword not in AROUND_OPERANDS
    }


def compared_columns(statement: str, table: str, *, is_only: bool = False) -> tuple[str, ...]:
    """Return the columns of a table that a statement compares.

    `table` may be an alias. With `is_only`, columns without a table name are included.
    """
    name = table.lower().rpartition(".")[2]
    found = [
        operand_column(operand)
        for comparison in comparisons_of(statement)
        for operand in map(without_parentheses, (comparison.left, comparison.right))
        if (operand[-3].named == name if len(operand) > 2 else is_only)
    ]
    return tuple(dict.fromkeys(filter(None, found)))


def _matching_parentheses(tokens: Sequence[Token]) -> dict[int, int]:
    """Return the index of each parenthesis's partner; the last index if it has no partner."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.text == "(":
            opened.append(place)
        elif token.text == ")" and opened:
            found[place] = opened.pop()
            found[found[place]] = place
    return found | dict.fromkeys(opened, len(tokens) - 1)


def _operand_end(
    tokens: Sequence[Token], partners: Mapping[int, int], place: int, step: int
) -> int:
    """Return the first index past the operand at `place`, in the direction of `step`."""
    depth = tokens[place].depth if 0 <= place < len(tokens) else 0
    while 0 <= place < len(tokens):
        token = tokens[place]
        if token.depth < depth or (token.keyword or token.text) in AROUND_OPERANDS:
            break
        is_outer = token.text == ("(" if step > 0 else ")")
        place = (partners.get(place, place) if is_outer else place) + step
    return place
