"""Count a scan's VM steps per row in SQLite's bytecode of the statement (EXPLAIN;
https://www.sqlite.org/opcode.html describes the opcodes).

A loop over a table begins after a Rewind and ends with the Next that jumps back to its beginning. A
comparison that jumps to this Next skips a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from queryprof.planner.facts import RowSteps, SkippingComparison

COMPARISONS = frozenset({"Eq", "Ne", "Lt", "Le", "Gt", "Ge", "If", "IfNot", "IsNull", "NotNull"})
LOOKUPS = frozenset({"SeekRowid", "NotFound", "NotExists"})
INNER_LOOPS = frozenset(
    {
        "Rewind",
        "Last",
        "SeekGE",
        "SeekGT",
        "SeekLE",
        "SeekLT",
        "VFilter",
        "Gosub",
        "InitCoroutine",
        "BeginSubrtn",
    }
)

AS_STORED = frozenset(
    {"RealAffinity", "Affinity", "Integer", "String8", "Real", "Variable", "Null", "SCopy", "Copy"}
)
"""Opcodes that leave a column's value unchanged, or load a value to compare with the column."""

ROWID = -1

Instruction = tuple[int, str, int, int]
"""Address, opcode, P1 and P2."""


@dataclass(frozen=True, slots=True)
class TableScanLoop:
    """The loop over the only table that a statement scans.

    Attributes:
        page: the table's root page. begin, end: the addresses of its first instruction and its
            Next.
    """

    page: int
    cursor: int
    begin: int
    end: int


def find_only_scan(program: Sequence[Instruction]) -> TableScanLoop | None:
    """Return the only scan of a program; None if there is no scan or more than one."""
    pages = {cursor: page for _, code, cursor, page in program if code == "OpenRead"}
    found = [
        TableScanLoop(pages[cursor], cursor, at + 1, end)
        for at, code, cursor, _ in program
        if code == "Rewind" and cursor in pages
        for end, code, of, to in program
        if (code, of, to) == ("Next", cursor, at + 1)
    ]
    starts = sum(code == "Rewind" and cursor in pages for _, code, cursor, _ in program)
    return found[0] if len(found) == starts == 1 else None


def steps_of_scan(
    program: Sequence[Instruction], scan: TableScanLoop, columns: Sequence[str], key: str
) -> RowSteps | None:
    """Return the steps of a scan; None if no comparison skips a row.

    Args:
        columns: the table's columns in their stored order. key: the name of the INTEGER PRIMARY
            KEY, which is the rowid; "" if there is none.
    """
    body = program[scan.begin : scan.end]
    inner = next((at - scan.begin for at, code, _, _ in body if code in INNER_LOOPS), None)
    left_out = tuple(_skipping_comparisons(body[:inner], scan, columns, key))
    if not left_out:
        return None
    sorters = {cursor for _, code, cursor, _ in body if code == "SorterInsert"}
    taken = scan.end - scan.begin + 1
    for at, code, cursor, to in program:  # a sorter adds steps per row
        if code == "SorterNext" and cursor in sorters:
            taken += at - to + 1
    inner_steps = None if inner is None else inner + 2
    return RowSteps(left_out, inner_steps, taken, max(0, len(program) - taken))


def _skipping_comparisons(
    body: Sequence[Instruction], scan: TableScanLoop, columns: Sequence[str], key: str
) -> Iterator[SkippingComparison]:
    """Yield the comparisons of a loop that skip rows."""
    names = frozenset({""})
    compared: set[str] = set()
    for at, code, p1, p2 in body:
        if code in ("Column", "Rowid"):
            number = p2 if code == "Column" else ROWID
            compared.add(_column_name(number, columns, key) if p1 == scan.cursor else "")
        elif code in LOOKUPS:
            compared = set()
        elif code in COMPARISONS and p2 == scan.end:
            if compared:  # else part of the previous comparison
                names = frozenset(compared)
            yield SkippingComparison(names, at - scan.begin + 2)
            compared = set()
        elif code not in AS_STORED:
            compared.add("")  # a value computed with the column


def _column_name(number: int, columns: Sequence[str], key: str) -> str:
    """Return the name of a column in lower case; "" if the table does not have it."""
    name = key if number == ROWID else columns[number] if number < len(columns) else ""
    return name.lower()
