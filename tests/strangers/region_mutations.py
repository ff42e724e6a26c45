"""Untrusted recordings: regions and parts with facts, headers, rows and names that no process
writes.
"""

from __future__ import annotations

import os
import random
import struct
from ast import literal_eval
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strangers.mutations import NUMBERS, TEXTS, placed

from queryprof.region.layout import RegionTable, RowColumn
from queryprof.region.region import START, opened_region

STRANGE: tuple[Any, ...] = (
    *TEXTS,
    *NUMBERS,
    "a\0b",
    "\ud800",
    "\udcff",
    True,
    b"x",
    2**70,
    -(2**70),
    10**400,
    -1.5,
    [],
    (),
    {},
    {"a": 1},
    ["a", 1],
    ["\0"],
    ("x",) * 200_000,
    [[]],
)
WHOLE = (
    "",
    "{}",
    "[]",
    "None",
    "{",
    "(" * 500,
    "[" * 90 + "]" * 90,
    "-" * 5000 + "1",
    "9" * 10_000,
)
WHOLE_BYTES = (b"\xff\xfe", b"\0", b"{'pid': 1}", b"{**{}}", b"{[]: 1}", b"'a' * 9", b"#\n" * 1000)
INTEGERS = (0, 1, 2, 3, 7, 2**16, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
REALS = (0.0, -1.0, 1e-320, 1e300, float("inf"), float("-inf"), float("nan"))
PARTS = (
    "{0}.1-\u00b2-1.live",
    "{0}.\u00b2-abc-1.live",
    "{0}.\u0663-abc-\u0663.live",
    "{0}.99999999999999999999-abc-1.live",
    "{0}.1-abc-99999999999.live",
    "{0}.1-abc-0.live",
    "{0}.-1-abc-1.live",
    "{0}.\u00b2.abc.live",
    "{0}.\u00b2-abc.new",
    "{0}.99999999999999999999-abc.new",
    "{0}-\u00b2.qprof",
    "\udcff.qprof.1-abc-1.live",
    "a\nb.qprof.1-abc-1.live",
    "\x1b[2J.qprof.1-abc-1.live",
    ".1-abc-1.live",
    ".live",
    "..qprof.1-abc-1.live",
    "x" * 230 + ".qprof.1-abc-1.live",
    "[x]*?.qprof.1-abc-1.live",
)


def copy_region(source: Path, target: Path) -> None:
    """Copy a file with its holes: most of a region is one."""
    with open(source, "rb") as file, open(target, "xb") as copy:
        os.fchmod(copy.fileno(), 0o600)
        size, at = os.fstat(file.fileno()).st_size, 0
        os.truncate(copy.fileno(), size)
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            os.pwrite(copy.fileno(), os.pread(file.fileno(), end - at, at), at)
            at = end


class Edit:
    """A region's file that is changed in place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with opened_region(str(path)) as region:
            self.head: RegionTable = region._head
            self.tables = {**region.tables}
            self.counts = {**region.counts}
            self.facts: dict[str, Any] = literal_eval(region.text(region["facts"]))

    def write(self, at: int, content: bytes) -> None:
        with open(self.path, "r+b") as file:
            os.pwrite(file.fileno(), content, at)

    def set_head(self, name: str, content: bytes) -> None:
        column = self.head.columns[name]
        self.write(self.head.at + column.at, content[: column.bytes])

    def add_text(self, content: bytes, length: int | None = None) -> int:
        """Add a text, and return its number. A given length may be wrong."""
        number, table = self.counts["texts"], self.tables["texts"]
        size = len(content) if length is None else length
        self.write(
            table.at + number, (struct.pack("<I", size) + content)[: table.capacity - number]
        )
        self.set_count("texts", min(number + 4 + len(content), table.capacity))
        return number

    def set_count(self, name: str, count: int) -> None:
        self.counts[name] = count
        at = self.head.at + self.head.columns["counts"].at + 4 * [*self.tables].index(name)
        self.write(at, struct.pack("<I", count))

    def set_facts(self, text: bytes) -> None:
        self.set_head("facts", struct.pack("<Q", self.add_text(text)))


def live(path: Path, pid: int, started: int) -> None:
    """Make a region that of a running process."""
    edit = Edit(path)
    edit.set_head("pid", packed(edit.head.columns["pid"], pid))
    edit.set_head("start_time", packed(edit.head.columns["start_time"], started))
    edit.set_facts(repr(edit.facts | {"pid": pid}).encode())


def packed(column: RowColumn, value: float) -> bytes:
    """Return a value, or the bits of it that fit into a column."""
    if column.code == "d":
        return struct.pack("<d", float(value))
    return (int(value) % 2**64).to_bytes(8, "little")[: column.bytes]


def region(draw: random.Random, path: Path, case: Path) -> str:
    """Change a region or a part. Return a description of the change."""
    kinds: dict[str, Callable[[random.Random, Path], str]] = {
        "head": _head,
        "rows": _rows,
        "texts": _texts,
        "description": _description,
        "counts": _counts,
        "bytes": _bytes,
        "cut": _cut,
        "placed": placed,
        "name": _name,
    }
    kind = draw.choice(["facts"] * 5 + ["head", "rows", "rows", *kinds])
    how = _facts(draw, path, case) if kind == "facts" else kinds[kind](draw, path)
    return f"{kind}: {how}"


def _facts(draw: random.Random, path: Path, case: Path) -> str:
    """Change the values, keys or types of the process's facts."""
    edit = Edit(path)
    if draw.random() < 0.15:
        text = draw.choice([*(one.encode() for one in WHOLE), *WHOLE_BYTES])
        edit.set_facts(text)
        return repr(text[:40])
    facts, done = dict(edit.facts), []
    for _ in range(draw.randint(1, 3)):
        key = draw.choice(sorted(facts))
        how = draw.random()
        if how < 0.15:
            del facts[key]
        elif how < 0.25:
            facts[draw.choice(STRANGE[:20])] = facts.pop(key)
        else:
            facts[key] = _trace(draw, case) if key == "trace" else draw.choice(STRANGE)
        done.append(f"{key} = {str(facts.get(key))[:40]!r}")
    edit.set_facts(repr(facts).encode("utf-8", "surrogatepass"))
    return "; ".join(done)


def _trace(draw: random.Random, case: Path) -> Any:
    """Return a trace's path that leads to a writable place of this test, or nowhere."""
    texts = [one for one in STRANGE if not (isinstance(one, str) and one[:1] == "/")]
    names = ("other.qprof", "a\nb.qprof", "x" * 250, "\udcff.qprof", "good.qprof", "[x]*?", "..")
    paths = [
        *(f"{case}/place/{name}" for name in names),
        f"{case}/gone/x.qprof",
        f"{case}/place/good.qprof/x",
        "/proc/nowhere/x",
        "/dev/null/x",
    ]
    return draw.choice([*paths, draw.choice(texts)])


def _number(draw: random.Random, column: RowColumn) -> float:
    return draw.choice(REALS if column.code == "d" else INTEGERS)


def _head(draw: random.Random, path: Path) -> str:
    """Change values of the whole recording."""
    edit, done = Edit(path), []
    for _ in range(draw.randint(1, 3)):
        column = draw.choice([one for name, one in edit.head.columns.items() if name != "counts"])
        value = _number(draw, column)
        edit.set_head(column.name, packed(column, value) * (column.bytes // 8 or 1))
        done.append(f"{column.name} = {value}")
    return "; ".join(done)


def _rows(draw: random.Random, path: Path) -> str:
    """Change values of rows."""
    edit, done = Edit(path), []
    filled = [name for name, count in edit.counts.items() if count and name != "texts"]
    for _ in range(draw.choice([1, 3, 20])):
        table = edit.tables[draw.choice(filled)]
        column = draw.choice([*table.columns.values()])
        row, value = draw.randrange(edit.counts[table.name]), _number(draw, column)
        at = table.at + row * table.row_bytes + column.at
        edit.write(at, (packed(column, value) * column.bytes)[: column.bytes])
        done.append(f"{table.name}[{row}].{column.name} = {value}")
    return "; ".join(done[:3])


def _texts(draw: random.Random, path: Path) -> str:
    """Give rows texts that are strange, invalid Unicode, cut off, or missing."""
    edit = Edit(path)
    text = draw.choice([draw.choice(TEXTS).encode("utf-8", "surrogatepass"), b"\xff\0\xfe", b""])
    number = edit.add_text(text, draw.choice([None, None, 0, 2**31, 2**32 - 1]))
    columns = (
        ("statements", "text"),
        ("lines", "function"),
        ("lines", "file"),
        ("spans", "name"),
        ("threads", "name"),
        ("plans", "text"),
    )
    done = []
    for table_name, name in draw.sample(columns, 2):
        table = edit.tables[table_name]
        column = table.columns.get(name) or draw.choice([*table.columns.values()])
        for row in range(edit.counts[table_name]):
            at = table.at + row * table.row_bytes + column.at
            edit.write(at, packed(column, number))
        done.append(f"{table_name}.{column.name}")
    return f"{text[:40]!r} {done}"


def _counts(draw: random.Random, path: Path) -> str:
    """Increase or decrease the row counts of tables."""
    edit, done = Edit(path), []
    for _ in range(draw.randint(1, 3)):
        table = edit.tables[draw.choice([*edit.tables])]
        count = draw.choice([0, 1, table.capacity // 50, 2**31, 2**32 - 1])
        if table.capacity * table.row_bytes > 2**21:
            count = min(count, 50)  # a full large table takes seconds
        edit.set_count(table.name, count)
        done.append(f"{table.name}: {count}")
    return "; ".join(done)


def _description(draw: random.Random, path: Path) -> str:
    """Make the description of the tables wrong."""
    content = path.open("rb").read(1 << 16)
    magic, version, at, length = START.unpack_from(content)
    words = content[at : at + length].decode("ascii").split(" ")
    done = []
    for _ in range(draw.choice([1, 1, 3])):
        place = draw.randrange(len(words))
        old = words[place]
        parts = old.split(":")
        values = [*map(str, INTEGERS), "-1", "", "x", "\u0663", "I", "s", "B", "9" * 5000]
        parts[draw.randrange(len(parts))] = draw.choice(values)
        words[place] = draw.choice([":".join(parts)] * 3 + ["", "\n", old + " " + old])
        done.append(f"{old!r} -> {words[place][:40]!r}")
    text = " ".join(words).encode()
    end = path.stat().st_size
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), text, end)
        version, length = draw.choice([(version, len(text))] * 9 + [(99, 2**32 - 1)])
        os.pwrite(file.fileno(), START.pack(magic, version, end, length), 0)
    return "; ".join(done)


def _bytes(draw: random.Random, path: Path) -> str:
    """Change bytes in the header, the description, or rows."""
    edit = Edit(path)
    last = draw.choice([START.size, edit.head.row_bytes, 16384, 30_000_000])
    places = [draw.randrange(last) for _ in range(draw.choice([1, 5, 50]))]
    for at in places:
        edit.write(at, bytes([draw.randrange(256)]))
    return f"{len(places)} below {last}"


def _cut(draw: random.Random, path: Path) -> str:
    size = path.stat().st_size
    length = draw.choice([0, 7, 20, 100, 5000, size // 2, size - 1, draw.randrange(size)])
    os.truncate(path, length)
    return str(length)


def _name(draw: random.Random, path: Path) -> str:
    """Give the file another name in the same directory."""
    name = draw.choice(PARTS).format("good.qprof")
    os.rename(path, os.fsencode(path.parent / name))
    return repr(name)
