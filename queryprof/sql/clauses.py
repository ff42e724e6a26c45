"""Which clauses a statement has, and what it compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from queryprof.sql.tokens import Token, first_token, kept, tokens_of

VERBS = frozenset({"SELECT", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"})
"""What a statement does that begins with WITH."""

READS = frozenset({"SELECT", "WITH", "VALUES"})
WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})

BEFORE_ROWS = frozenset({"FROM", "JOIN", "AS", "MATERIALIZED"})
"""Before the parenthesis of a query whose rows are the statement's; of others, a value is taken."""

ADDS_UP = frozenset(
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
"""Of a program's own functions SQLite alone knows which do so, too (Served.folds)."""

COMPARES = frozenset(
    {"=", "==", "<", ">", "<=", ">=", "<>", "!=", "IN", "LIKE", "GLOB", "IS", "BETWEEN"}
)
CHOOSING = frozenset({"WHERE", "ON"})
OTHER_CLAUSES = frozenset(
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
        *OTHER_CLAUSES,
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
DEEPEST = 40
"""Parentheses around a comparison, beyond which it is not looked at: each may be in the operands of
all those around it.
"""

NO_FUNCTIONS = frozenset({"CAST", "IN", "AND", "OR", "NOT", "EXISTS", "VALUES"})
NO_COLUMNS = frozenset(
    {
        "AS",
        "COLLATE",
        "NULL",
        "TRUE",
        "FALSE",
        "AND",
        "OR",
        "NOT",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
    }
)


@dataclass(frozen=True, slots=True)
class Clauses:
    """What a statement has.

    Attributes:
        chooses: WHERE; groups: GROUP BY; orders: ORDER BY; limits: LIMIT; skips: LIMIT with an
            offset: of the queries whose rows are the statement's.
        adds_up: it calls one of ADDS_UP, which read all rows.
        changed: the table that it writes to, in small letters; else empty.
    """

    chooses: bool
    groups: bool
    orders: bool
    limits: bool
    skips: bool
    adds_up: bool
    changed: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two operands, and how they are compared; of SET what is assigned.

    Attributes:
        clause: WHERE, ON, SET, ...: the keyword that it is behind.
        tokens: of the whole statement; left_range, right_range: where in them the operands are.
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


@kept
def clauses_of(statement: str) -> Clauses:
    """The clauses of a statement."""
    tokens = tokens_of(statement)
    found: set[str] = set()
    queries = [True]
    limit_depth = -1
    before = ""
    for token in tokens:
        mark = token.keyword or token.text
        if mark == "(":
            queries.append(queries[-1] and before in BEFORE_ROWS)
            found |= {"ADDS UP"} if before in ADDS_UP else set()
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
        changed=_changed(_from_verb(tokens)),
    )


def verb_of(statement: str) -> str:
    """What a statement does, in capitals; of WITH ... the verb behind it; empty: it has none."""
    first = first_token(statement)
    if first is None or first.keyword != "WITH":
        return first.keyword if first else ""
    return next((token.keyword for token in _from_verb(tokens_of(statement))), "WITH")


def is_single(statement: str) -> bool:
    """Whether a text is one statement, as it is not where one is behind a semicolon."""
    tokens = tokens_of(statement)
    return not any(token.text == ";" and token.depth == 0 for token in tokens[:-1])


def _from_verb(tokens: Sequence[Token]) -> list[Token]:
    """The tokens outside of parentheses, from the verb on."""
    outside = [token for token in tokens if token.depth == 0]
    if not _is(outside, 0, "WITH"):
        return outside
    places = (place for place, token in enumerate(outside) if token.keyword in VERBS)
    return outside[next(places, len(outside)) :]


def _changed(outside: Sequence[Token]) -> str:
    """The table that is written to, by the tokens from the verb on."""
    verb = outside[0].keyword if outside else ""
    if verb not in WRITES:
        return ""
    place = 1 if verb == "UPDATE" else 2
    place += 2 * _is(outside, 1, "OR")
    place += 2 * _is(outside, place + 1, ".")
    return outside[place].named if len(outside) > place else ""


def comparisons_of(statement: str) -> tuple[Comparison, ...]:
    """What WHERE and ON compare, in any query of a statement."""
    return tuple(one for one in all_comparisons_of(statement) if one.clause in CHOOSING)


@kept
def all_comparisons_of(statement: str) -> tuple[Comparison, ...]:
    """What any clause of a statement compares or assigns."""
    return tuple(_comparisons(tokens_of(statement)))


def _comparisons(tokens: tuple[Token, ...]) -> Iterator[Comparison]:
    clauses = [""]
    partners = _partners(tokens)
    for place, token in enumerate(tokens):
        mark = token.keyword or token.text
        if mark == "(":
            clauses.append(clauses[-1])
        elif mark == ")":
            del clauses[max(1, token.depth + 1) :]
        elif mark in CHOOSING | OTHER_CLAUSES:
            clauses[-1] = "CONFLICT" if _is(tokens, place + 1, "CONFLICT") else mark
        elif mark in COMPARES and token.depth <= DEEPEST:
            left = place - 1 - _is(tokens, place - 1, "NOT")
            right = place + 1 + _is(tokens, place + 1, "NOT")
            yield Comparison(
                clauses[-1],
                mark,
                tokens,
                slice(_end(tokens, partners, left, -1) + 1, left + 1),
                slice(right, _end(tokens, partners, right, 1)),
            )


def sorted_by(statement: str) -> Iterator[tuple[Token, ...]]:
    """The terms of ORDER BY and GROUP BY."""
    tokens = tokens_of(statement)
    partners = _partners(tokens)
    for start, token in enumerate(tokens):
        is_list = token.keyword in ("ORDER", "GROUP") and _is(tokens, start + 1, "BY")
        if not is_list or token.depth > DEEPEST:
            continue
        place = start + 2
        while term := tokens[place : _end(tokens, partners, place, 1)]:
            yield term
            place += len(term)
            place += _is(tokens, place, "ASC") or _is(tokens, place, "DESC")
            if not _is(tokens, place, ","):
                break
            place += 1


def first_table(statement: str) -> str:
    """The first name behind FROM, in small letters; empty: there is none."""
    pairs = pairwise(tokens_of(statement))
    return next((name.named for word, name in pairs if word.keyword == "FROM" and name.named), "")


def aliases_of(statement: str) -> dict[str, str]:
    """By a name: the name before it, which may be that of its table."""
    tokens = [token for token in tokens_of(statement) if token.keyword != "AS"]
    return {
        second.named: first.named
        for first, second in pairwise(tokens)
        if first.named and second.named
    }


def has_query(operand: Sequence[Token]) -> bool:
    """Whether a query is in an operand: its names are of other tables."""
    return "SELECT" in keywords_of(operand)


def keywords_of(operand: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.keyword for token in operand)


def compared_of(statement: str, table: str, *, is_only: bool = False) -> tuple[str, ...]:
    """The columns that a statement compares under a table's name, or another name that it
    gives it; of its only table those without a name, too.
    """
    name = table.lower().rpartition(".")[2]
    found = [
        column_of(operand)
        for comparison in comparisons_of(statement)
        for operand in (comparison.left, comparison.right)
        if (operand[-3].named == name if len(operand) > 2 else is_only)
    ]
    return tuple(dict.fromkeys(filter(None, found)))


def column_of(operand: Sequence[Token]) -> str:
    """The column that an operand is, in small letters; empty: it is more, or none."""
    names = operand[::2]
    is_plain = len(operand) % 2 == 1 and all(token.text == "." for token in operand[1::2])
    return names[-1].named if is_plain and all(token.named for token in names) else ""


def names_in(operand: Sequence[Token]) -> tuple[str, ...]:
    """The names in an operand that may be columns, without those of tables, functions, types and
    collations.
    """
    found: list[str] = []
    in_type = False
    for place, token in enumerate(operand):
        in_type = (in_type or token.keyword == "AS") and token.text != ")"
        is_other = in_type or token.keyword in NO_COLUMNS or _is(operand, place - 1, "COLLATE")
        if token.named and not is_other and not _is_any(operand, place + 1, ".("):
            found.append(token.named)
    return tuple(found)


def functions_in(operand: Sequence[Token]) -> tuple[str, ...]:
    """The functions that an operand calls, in small letters."""
    return tuple(
        token.named
        for token, after in pairwise(operand)
        if token.kind == "word" and token.keyword not in NO_FUNCTIONS and after.text == "("
    )


def text_of(statement: str, operand: Sequence[Token]) -> str:
    """An operand's text, without the names of tables before columns."""
    parts: list[str] = []
    end = operand[0].start if operand else 0
    place = 0
    while place < len(operand):
        token = operand[place]
        parts.append(statement[end : token.start])
        if token.named and _is(operand, place + 1, "."):
            place += 2
            end = operand[place].start if place < len(operand) else 0
            continue
        parts.append(token.text)
        end = token.start + len(token.text)
        place += 1
    return "".join(parts)


def _partners(tokens: Sequence[Token]) -> dict[int, int]:
    """By the place of a parenthesis: that of its partner, or where the tokens end."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.text == "(":
            opened.append(place)
        elif token.text == ")" and opened:
            found[place] = opened.pop()
            found[found[place]] = place
    return found | dict.fromkeys(opened, len(tokens) - 1)


def _end(tokens: Sequence[Token], partners: Mapping[int, int], place: int, step: int) -> int:
    """The first place that is no part of the operand which begins at a place; steps over what is in
    parentheses.
    """
    depth = tokens[place].depth if 0 <= place < len(tokens) else 0
    while 0 <= place < len(tokens):
        token = tokens[place]
        if token.depth < depth or (token.keyword or token.text) in AROUND_OPERANDS:
            break
        is_outer = token.text == ("(" if step > 0 else ")")
        place = (partners.get(place, place) if is_outer else place) + step
    return place


def _is_any(tokens: Sequence[Token], place: int, signs: str) -> bool:
    return 0 <= place < len(tokens) and tokens[place].text in tuple(signs)


def _is(tokens: Sequence[Token], place: int, mark: str) -> bool:
    return 0 <= place < len(tokens) and (tokens[place].keyword or tokens[place].text) == mark
