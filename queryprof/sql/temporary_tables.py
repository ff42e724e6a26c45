"""Find the temporary tables that statements create."""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.sql.tokens import tokens_of

_BEFORE_NAME = frozenset({"CREATE", "TEMP", "TEMPORARY", "TABLE", "IF", "NOT", "EXISTS"})


def temporary_tables(statements: Iterable[str]) -> frozenset[str]:
    """Return the names of the temporary tables that statements create, in lower case."""
    found = set()
    for statement in statements:
        tokens = tokens_of(statement)
        first = [token.keyword for token in tokens[:3]]
        if first in (["CREATE", "TEMP", "TABLE"], ["CREATE", "TEMPORARY", "TABLE"]):
            names = (token.named for token in tokens if token.keyword not in _BEFORE_NAME)
            found.add(next(filter(None, names), ""))
    return frozenset(found)
