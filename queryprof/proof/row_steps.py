"""How many VM steps a scan takes for a row, by SQLite's own program of the statement (EXPLAIN).

The opcodes are those of https://www.sqlite.org/opcode.html: a loop over a table begins behind its
Rewind and ends with the Next that goes back there; a comparison that jumps to that Next leaves a
row out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from queryprof.analysis.findings.planning import LeftOut, RowSteps

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
"""What leaves a column's value as it is, or puts another one beside it."""

ROWID = -1

Instruction = tuple[int, str, int, int]
"""Address, opcode, P1 and P2."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The loop over the only table that a statement reads from end to end.

    Attributes:
        page: of the table's root; begin, end: addresses of its first instruction and of its Next.
    """

    page: int
    cursor: int
    begin: int
    end: int


def scan_of(program: Sequence[Instruction]) -> Scan | None:
    """The scan of a program; None: there is none, or another one."""
    pages = {cursor: page for _, code, cursor, page in program if code == "OpenRead"}
    found = [
        Scan(pages[cursor], cursor, at + 1, end)
        for at, code, cursor, _ in program
        if code == "Rewind" and cursor in pages
        for end, code, of, to in program
        if (code, of, to) == ("Next", cursor, at + 1)
    ]
    starts = sum(code == "Rewind" and cursor in pages for _, code, cursor, _ in program)
    return found[0] if len(found) == starts == 1 else None


def row_steps(
    program: Sequence[Instruction], scan: Scan, columns: Sequence[str], key: str
) -> RowSteps | None:
    """The steps of a scan; None: no comparison leaves a row of it out.

    Args:
        columns: of the table, in their order; key: the one that is the rowid.
    """
    body = program[scan.begin : scan.end]
    inner = next((at - scan.begin for at, code, _, _ in body if code in INNER_LOOPS), None)
    left_out = tuple(_left_out(body[:inner], scan, columns, key))
    if not left_out:
        return None
    sorters = {cursor for _, code, cursor, _ in body if code == "SorterInsert"}
    taken = scan.end - scan.begin + 1
    for at, code, cursor, to in program:  # each row comes out of a sorter, too
        if code == "SorterNext" and cursor in sorters:
            taken += at - to + 1
    inner_steps = None if inner is None else inner + 2
    return RowSteps(left_out, inner_steps, taken, max(0, len(program) - taken))


def _left_out(
    body: Sequence[Instruction], scan: Scan, columns: Sequence[str], key: str
) -> Iterator[LeftOut]:
    """The comparisons of a loop that leave rows out."""
    names = frozenset({""})
    compared: set[str] = set()
    for at, code, p1, p2 in body:
        if code in ("Column", "Rowid"):
            number = p2 if code == "Column" else ROWID
            compared.add(_name(number, columns, key) if p1 == scan.cursor else "")
        elif code in LOOKUPS:
            compared = set()
        elif code in COMPARISONS and p2 == scan.end:
            if compared:  # else what was compared before is, once more
                names = frozenset(compared)
            yield LeftOut(names, at - scan.begin + 2)
            compared = set()
        elif code not in AS_STORED:
            compared.add("")  # it is computed with


def _name(number: int, columns: Sequence[str], key: str) -> str:
    """The name of a column in small letters; "": it is none of the table's."""
    name = key if number == ROWID else columns[number] if number < len(columns) else ""
    return name.lower()
