"""Find tables that a join multiplies with each other, in SQLite's program of the statement
(EXPLAIN).

https://www.sqlite.org/opcode.html describes the opcodes. A search begins with a Seek, whose
registers hold values of the loops around it. Two searches of several rows multiply if no value
leads from one to the other: each row of one is combined with each row of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from queryprof.planner.row_steps import COMPARISONS

SEEKS = frozenset({"SeekGE", "SeekGT", "SeekLE", "SeekLT"})
SINGLE_SEEKS = frozenset({"SeekRowid", "NotExists"})
COPIES = frozenset({"Copy", "SCopy"})
CALCULATIONS = frozenset({"Add", "Subtract", "Multiply", "Divide", "Remainder", "Concat"})
CALLS = frozenset({"Function", "PureFunc"})

MAX_REGISTERS = 16
"""The most columns of a key, and arguments of a function, that are looked at."""

Operation = tuple[int, str, int, int, int, object]
"""Address, opcode, P1, P2, P3 and P4."""


@dataclass(frozen=True, slots=True)
class _Search:
    """A search inside a join.

    Attributes:
        end: the address of its Next; 0 if it finds a single row.
        parents: the cursors whose values it searches for.
    """

    cursor: int
    at: int
    end: int
    parents: frozenset[int]


def crossed_root_pages(program: Sequence[Operation]) -> tuple[int, ...]:
    """Return the root pages of two tables or indexes whose rows a join combines, each with each.
    The page of the table that both are joined to is the third. Empty if there are no such tables.
    """
    pages = {cursor: page for _, code, cursor, page, *_ in program if code == "OpenRead"}
    pages |= _automatic_pages(program, pages)
    owners = {table: index for _, code, index, _, table, _ in program if code == "DeferredSeek"}
    searches = {one.cursor: one for one in _searches(program, owners)}
    many = [one for one in searches.values() if one.end and one.cursor in pages]
    for one, other in combinations(many, 2):
        is_inside = one.at < other.at < one.end
        is_linked = one.cursor in _ancestors(other, searches)
        if is_inside and not is_linked and not _is_compared(program, one, other, owners):
            joined_to = [pages[cursor] for cursor in sorted(one.parents) if cursor in pages]
            return (pages[one.cursor], pages[other.cursor], *joined_to[:1])
    return ()


def _automatic_pages(
    program: Sequence[Operation], pages: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield the cursors of automatic indexes, with the root pages of their tables."""
    automatic = -1
    for _, code, cursor, *_ in program:
        if code == "OpenAutoindex":
            automatic = cursor
        elif code == "Rewind" and automatic >= 0:
            yield automatic, pages.get(cursor, 0)
            automatic = -1


def _searches(program: Sequence[Operation], owners: dict[int, int]) -> Iterator[_Search]:
    """Yield the searches of a program, in order."""
    ends = {cursor: at for at, code, cursor, *_ in program if code in ("Next", "Prev")}
    sources: dict[int, frozenset[int]] = {}  # the cursors that each register's value comes from
    for at, code, p1, p2, p3, p4 in program:
        if code == "Column":
            sources[p3] = frozenset({owners.get(p1, p1)})
        elif code in ("Rowid", "IdxRowid"):
            sources[p2] = frozenset({owners.get(p1, p1)})
        elif code in COPIES:
            sources[p2] = sources.get(p1, frozenset())
        elif code in SEEKS or code in SINGLE_SEEKS:
            count = int(str(p4)) if code in SEEKS and str(p4).isdecimal() else 1
            keys = range(p3, p3 + min(MAX_REGISTERS, count))
            parents = [sources.get(key, frozenset()) for key in keys]
            end = ends.get(p1, 0) if code in SEEKS else 0
            yield _Search(p1, at, end, frozenset().union(*parents))


def _argument_count(function: object) -> int:
    """Return the number of a function's arguments: 2 for the P4 operand "instr(2)"."""
    count = str(function).rpartition("(")[2].rstrip(")")
    return min(MAX_REGISTERS, int(count)) if count.isdecimal() else MAX_REGISTERS


def _ancestors(one: _Search, searches: dict[int, _Search]) -> frozenset[int]:
    """Return the cursors of the loops whose values lead to a search."""
    found: set[int] = set()
    waiting = [*one.parents]
    while waiting:
        cursor = waiting.pop()
        if cursor not in found:
            found.add(cursor)
            waiting += searches[cursor].parents if cursor in searches else ()
    return frozenset(found)


def _is_compared(
    program: Sequence[Operation], one: _Search, other: _Search, owners: dict[int, int]
) -> bool:
    """Return whether the inner one of two searches compares its rows with the outer one's. DISTINCT
    compares a value with the one before, which comes from the same cursor.
    """
    sources: dict[int, set[int]] = {}  # the cursors that a register's values come from
    for _, code, p1, p2, p3, p4 in program:
        if code == "Column":
            sources.setdefault(p3, set()).add(owners.get(p1, p1))
        elif code in ("Rowid", "IdxRowid"):
            sources.setdefault(p2, set()).add(owners.get(p1, p1))
        elif code in COPIES:
            sources.setdefault(p2, set()).update(sources.get(p1, ()))
        elif code in CALCULATIONS:
            sources.setdefault(p3, set()).update(sources.get(p1, ()), sources.get(p2, ()))
        elif code in CALLS:
            arguments = range(p2, p2 + _argument_count(p4))
            sources.setdefault(p3, set()).update(*(sources.get(one, ()) for one in arguments))
    operands = [
        (sources.get(p1, set()), sources.get(p3, set()))
        for at, code, p1, _, p3, _ in program
        if code in COMPARISONS and other.at < at < one.end
    ]
    return any(
        one.cursor in left | right and not left == right == {one.cursor} for left, right in operands
    )
