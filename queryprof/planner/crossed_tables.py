"""Find two tables that a join multiplies: each row of one is combined with each row of the other.

The source is SQLite's bytecode of the statement (EXPLAIN; https://www.sqlite.org/opcode.html
describes the opcodes). A search begins with a Seek, whose registers hold values of the loops around
it. Two searches multiply their rows if no value leads from one search to the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations

from queryprof.planner.row_steps import COMPARISONS

SEEKS = frozenset({"SeekGE", "SeekGT", "SeekLE", "SeekLT"})
SINGLE_SEEKS = frozenset({"SeekRowid", "NotExists"})
COPIES = frozenset({"Copy", "SCopy"})
CALCULATIONS = frozenset(
    {
        "Add",
        "Subtract",
        "Multiply",
        "Divide",
        "Remainder",
        "Concat",
        "BitAnd",
        "BitOr",
        "ShiftLeft",
        "ShiftRight",
    }
)
READS = {"Column": True, "VColumn": True, "Rowid": False, "IdxRowid": False}
"""Opcodes that read a value of a row. The value is True if the opcode writes to register P3, and
False for P2.
"""

CALLS = frozenset({"Function", "PureFunc"})
CONSTANTS = frozenset({"Variable", "Integer", "Int64", "Real", "String8", "Null", "Blob"})

MAX_REGISTERS = 16
"""The maximum number of key columns and function arguments to follow."""

UNKNOWN = -1
"""Stands for a cursor that does not read a table, but the rows of a subquery or function."""

Operation = tuple[int, str, int, int, int, object]
"""An instruction: address, opcode, P1, P2, P3 and P4."""

Sources = Mapping[int, AbstractSet[int]]
"""For each register, the cursors whose rows its values come from."""


@dataclass(frozen=True, slots=True)
class _Search:
    """A search inside a join.

    Attributes:
        at: the address of its Seek. end: the address of its Next; 0 if the search finds at most one
            row.
        parents: the cursors whose values are the search key.
    """

    cursor: int
    at: int
    end: int
    parents: frozenset[int]


def crossed_root_pages(program: Sequence[Operation]) -> tuple[int, ...]:
    """Return the root pages of two tables or indexes that a join multiplies. If both are joined to
    another table, its page is third. The result is empty if there are no such tables.
    """
    pages = {cursor: page for _, code, cursor, page, *_ in program if code == "OpenRead"}
    pages |= _automatic_pages(program, pages)
    sources = _sources(program, pages)
    searches = {one.cursor: one for one in _searches(program, sources)}
    ancestors = {cursor: _ancestors(one, searches) for cursor, one in searches.items()}
    many = [one for one in searches.values() if one.end and one.cursor in pages]
    for one, other in combinations(many, 2):
        pair = {one.cursor, other.cursor}
        is_inside = one.at < other.at < one.end
        is_linked = not {one.cursor, UNKNOWN}.isdisjoint(ancestors[other.cursor])
        is_used = any(pair <= found for found in ancestors.values())  # a lookup per pair
        if not is_inside or is_linked or is_used:
            continue
        if not _is_compared(program, one, other, sources):
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


def _sources(program: Sequence[Operation], pages: Mapping[int, int]) -> Sources:
    """Return the cursors whose rows the values of each register come from."""
    owners = {table: index for _, code, index, _, table, _ in program if code == "DeferredSeek"}
    found: dict[int, set[int]] = defaultdict(set)
    for _ in range(2):  # a value may come from a later instruction, in an earlier iteration
        for _, code, p1, p2, p3, p4 in program:
            cursor = owners.get(p1, p1)
            if code in READS:
                found[p3 if READS[code] else p2].add(cursor if cursor in pages else UNKNOWN)
            elif code in CONSTANTS:
                found[p2] |= set()
            elif code in COPIES:
                found[p2] |= found.get(p1, set())
            elif code in CALCULATIONS or code in CALLS:
                is_call = code in CALLS
                taken = range(p2, p2 + _argument_count(p4)) if is_call else (p1, p2)
                found[p3].update(*(found.get(one, set()) for one in taken))
    return found


def _searches(program: Sequence[Operation], sources: Sources) -> Iterator[_Search]:
    """Yield the searches of a program, in order."""
    ends = {cursor: at for at, code, cursor, *_ in program if code in ("Next", "Prev")}
    for at, code, p1, _, p3, p4 in program:
        if code in SEEKS or code in SINGLE_SEEKS:
            count = int(str(p4)) if code in SEEKS and str(p4).isdecimal() else 1
            keys = range(p3, p3 + min(MAX_REGISTERS, count))
            parents = [sources.get(key, {UNKNOWN}) for key in keys]
            end = ends.get(p1, 0) if code in SEEKS else 0
            yield _Search(p1, at, end, frozenset().union(*parents))


def _argument_count(function: object) -> int:
    """Return a function's number of arguments, such as 2 for the P4 operand "instr(2)"."""
    count = str(function).rpartition("(")[2].rstrip(")")
    return min(MAX_REGISTERS, int(count)) if count.isdecimal() else MAX_REGISTERS


def _ancestors(one: _Search, searches: Mapping[int, _Search]) -> frozenset[int]:
    """Return the cursors whose values lead to a search, directly or through other searches."""
    found: set[int] = set()
    waiting = [*one.parents]
    while waiting:
        cursor = waiting.pop()
        if cursor not in found:
            found.add(cursor)
            waiting += searches[cursor].parents if cursor in searches else ()
    return frozenset(found)


def _is_compared(
    program: Sequence[Operation], one: _Search, other: _Search, sources: Sources
) -> bool:
    """Return whether the inner search (`other`) compares its rows with the rows of the outer search
    (`one`). Comparisons within one cursor do not count, because DISTINCT compares a value with the
    previous value.
    """
    operands = [
        (sources.get(p1, set()), sources.get(p3, set()))
        for at, code, p1, _, p3, _ in program
        if code in COMPARISONS and other.at < at < one.end
    ]
    return any(
        one.cursor in left | right and not left == right == {one.cursor} for left, right in operands
    )
