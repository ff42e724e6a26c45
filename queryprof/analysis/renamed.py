"""Renamed statements: those of two runs that are equal but for their identifiers.

A test that names a table at random runs another statement each time, and a table that was renamed
makes new statements that do the same. Such a pair is compared as one statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from queryprof.analysis.random_names import RANDOM

_TOKEN = re.compile(
    rf""" "(?:[^"]|"")*" | `[^`]*` | \[[^\]]*\] | (?:\w|\$|{RANDOM})+ | \S """, re.VERBOSE
)
_KEYWORD = re.compile(r"[A-Z]+|CURRENT_(?:DATE|TIME|TIMESTAMP)|[0-9].*")
"""Statements have their keywords in capitals, so a bare word in capitals may be one."""

_NAME = re.compile(r'[\w$"`\[]')
Cost = tuple[int, ...]
"""Executions, rows and further figures of one statement."""

_SAME_WORDS = 0.4
"""The share of common words from which on one statement replaces another."""


@lru_cache(maxsize=4096)
def structure_of(statement: str) -> tuple[str | int, ...]:
    """The tokens of a statement, with a number for each identifier, in the order in which they
    first come: equal for two statements that differ in names alone.
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


def pair_renamed(gone: Mapping[str, Cost], new: Mapping[str, Cost]) -> dict[str, str]:
    """New statement -> the missing one that differs from it in names alone; one to one.

    Args:
        gone, new: statement -> what it cost, its executions first. Of several equal ones the
            most expensive are paired; one that ran once is not paired with one that ran often.
    """
    waiting: dict[object, list[str]] = {}
    for statement in _ordered(gone):
        waiting.setdefault(_likeness(statement, gone[statement]), []).append(statement)
    pairs = {}
    for statement in _ordered(new):
        candidates = waiting.get(_likeness(statement, new[statement]))
        if candidates:
            pairs[statement] = candidates.pop(0)
    return pairs


def _likeness(statement: str, cost: Cost) -> object:
    return structure_of(statement), cost[0] > 1


def _ordered(costs: Mapping[str, Cost]) -> list[str]:
    return sorted(sorted(costs), key=costs.__getitem__, reverse=True)


def replaced_by(statement: str, gone: Iterable[str]) -> str:
    """The missing statement that a new statement most likely replaces; "" when none is similar."""
    words = set(_TOKEN.findall(statement))
    best, best_share = "", _SAME_WORDS
    for candidate in sorted(gone):
        others = set(_TOKEN.findall(candidate))
        share = len(words & others) / len(words | others)
        if share > best_share and candidate.split(" ", 1)[0] == statement.split(" ", 1)[0]:
            best, best_share = candidate, share
    return best
