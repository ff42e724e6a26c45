"""Untrusted Parquet files: values, types, footers and names that no queryprof writes."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from strangers.mutations import NUMBERS, TEXTS, bytes_changed, placed

DAY_NS = 86_400 * 10**9
TYPES = (
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.int8(),
    pa.int64(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("s"),
    pa.timestamp("ns", "Asia/Tokyo"),
    pa.decimal128(38, 10),
    pa.list_(pa.list_(pa.int64())),
    pa.struct([("a", pa.int64())]),
    pa.dictionary(pa.int32(), pa.string()),
    pa.null(),
)
COLUMNS = ("service", "HOST", "filename", "rowid", "x" * 10_000, "", "a\0b", '"; DROP TABLE x; --')
FOLDERS = (
    "service=%00",
    "service=\udcff",
    "service=a\nb",
    "service='; --",
    "service=*",
    "service=[x]",
    "service=~root",
    ".hidden",
    "x" * 250,
    "date=0000-00-00",
    "date=99999-01-01",
    "date=2026-02-30",
    "date=-1",
    "date=1900-01-01",
    "date=9999-12-31",
    "day-1/day-2/day-3",
)
FILES = (
    "day-.parquet",
    "day-0000000000000000.parquet",
    "\x1b[2J.parquet",
    "a\nb.parquet",
    "\udcff.parquet",
    "?.parquet",
    "[red].parquet",
    ".parquet",
    ".x.new",
    "x.PARQUET",
    "$(touch x).parquet",
    "x" * 240 + ".parquet",
)
COMPRESSIONS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")
INTEGERS = (0, 1, 2, 3, 5, 127, 2**31 - 1, 2**31, 2**32 - 1, 2**33, 2**62, 2**63 - 1, 2**64 - 1)


def parquet(draw: random.Random, path: Path) -> str:
    """Change a table's file. Return a description of the change."""
    kinds: dict[str, Callable[[random.Random, Path], str]] = {
        "values": _values,
        "types": _types,
        "columns": _columns,
        "facts": _facts,
        "footer": _footer,
        "form": _form,
        "name": _name,
        "bytes": _bytes,
        "placed": placed,
    }
    common = ["values"] * 3 + ["facts"] * 2 + ["footer"] * 4 + ["bytes"]
    kind = draw.choice([*kinds, *common])
    return f"{kind}: {kinds[kind](draw, path)}"


def _read(path: Path) -> pa.Table:
    return pq.ParquetFile(path).read()


def _values(draw: random.Random, path: Path) -> str:
    """Give columns values that no recording has, of the right types."""
    table, done = _read(path), []
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(table.num_columns)
        field = table.schema.field(at)
        value: Any = draw.choice([*TEXTS, *NUMBERS, [], [None], [-1, 40_000, 2**40], [1] * 5000])
        with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
            values = table.column(at).to_pylist()
            rows = [value if draw.random() < 0.7 else old for old in values]
            table = table.set_column(at, field, pa.array(rows, field.type))
            done.append(f"{field.name} = {str(value)[:30]!r}")
    pq.write_table(table, path)
    return "; ".join(done)


def _types(draw: random.Random, path: Path) -> str:
    """Change the type of a column: cast it if possible, otherwise fill it with nulls."""
    table = _read(path)
    at = draw.randrange(table.num_columns)
    name, kind = table.schema.names[at], draw.choice(TYPES)
    try:
        column = table.column(at).cast(kind)
    except pa.ArrowException:
        column = pa.nulls(table.num_rows, kind)
    with suppress(pa.ArrowException):
        pq.write_table(table.set_column(at, name, column), path)
    return f"{name}: {kind}"


def _columns(draw: random.Random, path: Path) -> str:
    """Drop, add, repeat or reorder columns."""
    table = _read(path)
    kind = draw.choice(["dropped", "added", "repeated", "turned", "none"])
    at = draw.randrange(table.num_columns)
    name = table.schema.names[at]
    if kind == "dropped":
        table = table.remove_column(at)
    elif kind == "added":
        name = draw.choice(COLUMNS)
        table = table.append_column(name, pa.array([draw.choice(TEXTS)] * table.num_rows))
    elif kind == "repeated":
        table = table.append_column(draw.choice([name, name.upper()]), table.column(at))
    elif kind == "turned":
        table = table.select(list(reversed(range(table.num_columns))))
    else:
        table = table.select([])
    pq.write_table(table, path)
    return f"{kind} {name[:30]}"


def _facts(draw: random.Random, path: Path) -> str:
    """Change the values of the footer's metadata."""
    table = _read(path)
    facts, done = dict(table.schema.metadata or {}), []
    for _ in range(draw.randint(1, 2)):
        key = draw.choice(
            [*sorted(facts), b"ARROW:schema", b"queryprof.lost", b"queryprof.sources"]
        )
        facts[key] = draw.choice([_json, _json, _text])(draw)
        done.append(f"{key!r} = {facts[key][:60]!r}")
    pq.write_table(table.replace_schema_metadata(facts), path, store_schema=draw.random() < 0.5)
    return "; ".join(done)


def _text(draw: random.Random) -> bytes:
    raw = [b"\xff", b"", b"\0", b"1" * 5000, b"[" * 100_000, b'{"a":' * 5000, b"01", b"-1", b"2"]
    texts = [text.encode("utf-8", "surrogatepass") for text in TEXTS if len(text) < 10_000]
    return draw.choice([*raw, *texts])


def _json(draw: random.Random) -> bytes:
    """Return JSON shaped like the footer's metadata, with values of wrong types."""

    def one() -> Any:
        return draw.choice([*NUMBERS, *TEXTS[:20], 10**400, [], {}, True, [[1]], "bad.parquet"])

    def process() -> Any:
        whole = ["h", 1, 2, 3, 4]
        whole[draw.randrange(5)] = one()
        return draw.choice([whole, whole[:4], whole[:-2], one()])

    several = [process() for _ in range(draw.choice([0, 1, 3, 2000]))]
    lost = {"processes": draw.choice([several, one()]), "files": one()}
    return json.dumps(draw.choice([several, lost, one(), {"processes": one()}])).encode()


def _form(draw: random.Random, path: Path) -> str:
    """Write the same rows, or none, or very many, in another format."""
    table = _read(path)
    kind = draw.choice(["none", "many", "groups", "plain"])
    if kind == "none":
        table = table.slice(0, 0)
    elif kind == "many":
        table = pa.concat_tables([table] * 20_000)
    options = {
        "compression": draw.choice(COMPRESSIONS),
        "row_group_size": 1 if kind == "groups" else None,
        "data_page_version": draw.choice(["1.0", "2.0"]),
        "use_dictionary": draw.random() < 0.5,
        "write_statistics": draw.random() < 0.5,
        "store_schema": draw.random() < 0.5,
        "version": draw.choice(["1.0", "2.4", "2.6"]),
    }
    pq.write_table(table.combine_chunks(), path, **options)
    return f"{kind} {options}"


def _bytes(draw: random.Random, path: Path) -> str:
    """Change bytes anywhere, or only in the footer and the marks at both ends."""
    if draw.random() < 0.3:
        return bytes_changed(draw, path)
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    first = draw.choice([footer, footer, len(content) - 8])
    for _ in range(draw.choice([1, 2, 10])):
        content[draw.randrange(first, len(content))] = draw.randrange(256)
    if draw.random() < 0.1:
        content[:4] = content[-4:] = b"PARE"
    path.write_bytes(content)
    return f"from {first} on"


def _footer(draw: random.Random, path: Path) -> str:
    """Make a number in the footer wrong: of rows, sizes, offsets, types, or a text's length."""
    content = path.read_bytes()
    first = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer, done = content[first:-8], []
    for _ in range(draw.choice([1, 1, 2])):
        numbers: list[tuple[int, int]] = []
        with suppress(IndexError):  # an earlier change may have moved the rest
            _walk_struct(footer, 0, numbers)
        at, end = draw.choice(numbers)
        value = draw.choice([*INTEGERS, draw.randrange(1000)])
        footer = footer[:at] + _varint(value) + footer[end:]
        done.append(f"{at}: {value}")
    path.write_bytes(content[:first] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return "; ".join(done)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1


def _walk_struct(data: bytes, at: int, numbers: list[tuple[int, int]]) -> int:
    """Note the positions of a struct's numbers in Thrift's compact protocol, and return its end
    (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
    """
    while head := data[at]:
        at += 1
        if not head >> 4:
            _, at = _read_varint(data, at)
        at = _walk_value(data, at, head & 15, numbers)
    return at + 1


def _walk_value(data: bytes, at: int, kind: int, numbers: list[tuple[int, int]]) -> int:
    if kind in (4, 5, 6):
        numbers.append((at, _read_varint(data, at)[1]))
        return numbers[-1][1]
    if kind == 8:
        length, start = _read_varint(data, at)
        numbers.append((at, start))
        return start + length
    if kind in (9, 10):
        size, element, at = data[at] >> 4, data[at] & 15, at + 1
        if size == 15:
            size, at = _read_varint(data, at)
        for _ in range(size):
            at = at + 1 if element in (1, 2) else _walk_value(data, at, element, numbers)
        return at
    if kind == 12:
        return _walk_struct(data, at, numbers)
    return at + {3: 1, 7: 8}.get(kind, 0)


def _name(draw: random.Random, path: Path) -> str:
    """Rename the file, or the folders above it."""
    folder, name = path.parent, path.name
    if draw.random() < 0.6:
        above = folder.parent if draw.random() < 0.5 else folder.parent.parent
        folder = above / draw.choice(FOLDERS)
    if folder == path.parent or draw.random() < 0.5:
        name = draw.choice(FILES)
    os.makedirs(os.fsencode(folder), exist_ok=True)
    os.rename(path, os.fsencode(folder / name))
    if draw.random() < 0.2:
        (folder / "up").symlink_to("../..")
    return f"{folder.name}/{name}"
