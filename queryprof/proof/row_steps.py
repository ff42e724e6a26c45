"""How many VM steps a scan takes for a row, by SQLite's own program of the statement (EXPLAIN).

The opcodes are those of https://www.sqlite.org/opcode.html: a loop over a table begins behind its Rewind and
ends with the Next that goes back there; a comparison that jumps to that Next leaves a row out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from queryprof.analysis.findings.planning import RowSteps

COMPARISONS = frozenset({"Eq", "Ne", "Lt", "Le", "Gt", "Ge", "If", "IfNot", "IsNull", "NotNull"})
INNER_LOOPS = frozenset(
    {"Rewind", "Last", "SeekGE", "SeekGT", "SeekLE", "SeekLT", "VFilter", "Gosub", "InitCoroutine", "BeginSubrtn"}
)  # fmt: skip

Instruction = tuple[int, str, int, int]
"""Address, opcode, P1 and P2."""


def row_steps(program: Sequence[Instruction]) -> RowSteps | None:
    """Of the only table that a statement reads from end to end; None: there is none or another one, or no
    comparison leaves a row of it out.
    """
    tables = {cursor for _, code, cursor, _ in program if code == "OpenRead"}
    scans = [
        (at, cursor) for at, code, cursor, _ in program if code == "Rewind" and cursor in tables
    ]
    if len(scans) != 1:
        return None
    begin, cursor = scans[0][0] + 1, scans[0][1]
    end = next(
        (at for at, code, of, to in program if (code, of, to) == ("Next", cursor, begin)), None
    )
    if end is None:
        return None
    body = program[begin:end]
    before = itertools.takewhile(lambda one: one[1] not in INNER_LOOPS, body)
    left_out = [at - begin + 2 for at, code, _, to in before if code in COMPARISONS and to == end]
    if not left_out:
        return None
    sorters = {cursor for _, code, cursor, _ in body if code == "SorterInsert"}
    taken = end - begin + 1
    for at, code, cursor, to in program:  # each row comes out of a sorter, too
        if code == "SorterNext" and cursor in sorters:
            taken += at - to + 1
    return RowSteps(left_out[0], left_out[-1], taken, max(0, len(program) - taken))
