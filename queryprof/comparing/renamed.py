"""Pair statements of two runs that differ only in identifiers, or in additional words.

A random table name makes a test run a different statement each time. Renaming a table also creates
new statements that do the same work. Both statements of such a pair are compared as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from queryprof.comparing.random_names import RANDOM

_TOKEN = re.compile(
    rf""" "(?:[^"]|"")*" | `[^`]*` | \[[^\]]*\] | (?:\w|\$|{RANDOM})+ | \S """, re.VERBOSE
)
_KEYWORD = re.compile(r"[A-Z]+|CURRENT_(?:DATE|TIME|TIMESTAMP)|[0-9].*")
"""Recorded statements have keywords in capitals, so an unquoted word in capitals may be a keyword.
"""

_NAME = re.compile(r'[\w$"`\[]')
Cost = tuple[int, ...]
"""Executions, rows and further figures of one statement."""

MIN_COMMON_WORDS = 0.4
"""A new statement replaces a missing statement only if both statements share more than this share
of their words.
"""


@lru_cache(maxsize=4096)
def statement_structure(statement: str) -> tuple[str | int, ...]:
    """Return the tokens of a statement, with a number for each identifier. Statements that differ
    only in identifiers have the same structure.
    """
    numbers: dict[str, int] = {}
    return tuple(
        (
            numbers.setdefault(token, len(numbers))
            if _NAME.match(token) and not _KEYWORD.fullmatch(token)
            else token
        )
        for token in _TOKEN.findall(statement)
    )


def pair_renamed_statements(gone: Mapping[str, Cost], new: Mapping[str, Cost]) -> dict[str, str]:
    """Return {new statement: missing statement} for statements that differ only in names, one to
    one.

    Args:
        gone, new: the cost of each statement, executions first. Statements that differ only in
            names are paired in the order of their costs. A statement that ran once is never paired
            with a statement that ran more than once.
    """
    waiting: dict[object, list[str]] = {}
    for statement in _most_expensive_first(gone):
        waiting.setdefault(_similarity_key(statement, gone[statement]), []).append(statement)
    pairs = {}
    for statement in _most_expensive_first(new):
        candidates = waiting.get(_similarity_key(statement, new[statement]))
        if candidates:
            pairs[statement] = candidates.pop(0)
    return pairs


def pair_widened_statements(
    gone: Mapping[str, object], new: Mapping[str, object]
) -> dict[str, str]:
    """Return {new statement: missing statement}, one to one, for pairs in which one statement has
    additional words, such as another column.

    Args:
        gone, new: the work of each statement. Only statements with equal work are paired.
    """
    waiting = sorted(gone)
    pairs = {}
    for statement in sorted(new):
        was = next(
            (
                one
                for one in waiting
                if gone[one] == new[statement] and _is_one_inside_the_other(one, statement)
            ),
            None,
        )
        if was is not None:
            waiting.remove(was)
            pairs[statement] = was
    return pairs


def _is_one_inside_the_other(a: str, b: str) -> bool:
    """Return whether the longer statement contains all words of the shorter statement in the same
    order.
    """
    shorter, longer = sorted((_TOKEN.findall(a), _TOKEN.findall(b)), key=len)
    rest = iter(longer)
    return shorter[:1] == longer[:1] and all(word in rest for word in shorter)


def _similarity_key(statement: str, cost: Cost) -> object:
    return statement_structure(statement), cost[0] > 1


def _most_expensive_first(costs: Mapping[str, Cost]) -> list[str]:
    return sorted(sorted(costs), key=costs.__getitem__, reverse=True)


def likely_replaced_statement(statement: str, gone: Iterable[str]) -> str:
    """Return the missing statement that this new statement most likely replaces, or ""."""
    words = set(_TOKEN.findall(statement))
    best, best_share = "", MIN_COMMON_WORDS
    for candidate in sorted(gone):
        others = set(_TOKEN.findall(candidate))
        share = len(words & others) / len(words | others)
        if share > best_share and candidate.split(" ", 1)[0] == statement.split(" ", 1)[0]:
            best, best_share = candidate, share
    return best
