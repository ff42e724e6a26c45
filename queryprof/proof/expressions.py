"""Expressions in a statement's text that an index may be on. Whether it may, and serves it, the planner says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from queryprof.proof.values import placeholders

NO_EXPRESSIONS = frozenset(
    ["COUNT", "SUM", "AVG", "TOTAL", "GROUP_CONCAT", "STRING_AGG", "IN", "EXISTS", "VALUES", "AND", "OR", "NOT", "WHERE", "SELECT", "FROM", "ON", "BY", "AS", "USING", "OVER", "ROW_NUMBER", "RANK", "RANDOM", "DATETIME"]
)  # fmt: skip

WORDS = frozenset(
    ["as", "text", "integer", "real", "numeric", "blob", "collate", "nocase", "and", "null"]
)
"""Within an expression, of SQL."""


def expressions_of(sql: str, columns: Iterable[str]) -> tuple[str, ...]:
    """The calls of functions over columns of one table, as an index on it needs them."""
    found: dict[str, None] = {}
    names = {name.lower() for name in columns}
    for call in _calls(sql):
        plain = re.sub(r"\b\w+\.(?=[\w\"])", "", call)
        texts = re.sub(r"'(?:[^']|'')*'", "", plain)
        words = {word.lower() for word in re.findall(r"\"?([A-Za-z_]\w*)\"?(?!\w|\()", texts)}
        words -= WORDS
        if words and words <= names and not placeholders(plain):
            found[plain] = None
    return tuple(found)


COMPARED = re.compile(r"\s*(?:=|<|>|!=|\b(?:IN|LIKE|GLOB|IS|BETWEEN|COLLATE)\b)", re.IGNORECASE)
SORTED = re.compile(r"\bBY\s+(?:[\w.]+\s*,\s*)*$", re.IGNORECASE)


def _calls(sql: str) -> Iterator[str]:
    """Calls that are compared or sorted by."""
    for match in re.finditer(r"\b([A-Za-z_]\w*)\(", sql):
        if match[1].upper() in NO_EXPRESSIONS:
            continue
        depth = 0
        for end in range(match.end() - 1, len(sql)):
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            if not depth:
                if COMPARED.match(sql, end + 1) or SORTED.search(sql, 0, match.start()):
                    yield sql[match.start() : end + 1]
                break
    for match in re.finditer(r"(?:\w+\.)?\w+ ?->>? ?'[^']*'", sql):
        yield match[0]
