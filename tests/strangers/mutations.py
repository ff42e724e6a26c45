"""Untrusted files: a recording's files with values, bytes and paths that no recording produces."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path

from queryprof.replay.workload import FIXED, MAGIC

VICTIM = "../victim/kept.db"

SQL = (
    f"SELECT 1; ATTACH '{VICTIM}' AS v; DELETE FROM v.t",
    f"VACUUM INTO '{VICTIM}.copy'",
    f"ATTACH '{VICTIM}' AS v",
    "PRAGMA temp_store_directory = '/tmp'",
    "SELECT load_extension('/tmp/x.so')",
    "SELECT writefile('written', 'x')",
    (
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        " LIMIT 1"
    ),
    "SELECT hex(randomblob(400000000))",
    "CREATE TABLE t (a); DROP TABLE t",
    "SELECT '" + "(" * 3000,
    "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "SELECT b FROM t WHERE a = ? AND \0",
)
TEXTS = (
    *SQL,
    "",
    "/etc/passwd",
    "../victim/kept.txt",
    VICTIM,
    "/dev/zero",
    "/proc/self/mem",
    "file:///etc/passwd",
    "~/.ssh/id",
    "</script><script>alert(1)</script>",
    "[red]x[/red] [/nothing]",
    "\x1b[2J\x1b]0;owned\x07",
    "\u202egnp.exe",
    "\x9b31m",
    "=cmd|' /C calc'!A0",
    "::error file=x::evil%0A",
    "| a |\n\n# b",
    "\u2028\r\n",
    "nan",
    "1e400",
    "-1",
    "9" * 30,
    "[" * 5000,
    '{"a":' * 5000,
    "1,2,3,x",
    "0,0,0",
    "x" * 1_000_000,
    "%s%n{}{0.__class__}",
    "null",
    "[]",
    "{}",
)
NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**62,
    2**63 - 1,
    -(2**63),
    10**18,
    1e308,
    float("inf"),
    float("-inf"),
    None,
)
BLOBS = (b"", b"\xff\xfe\x00", bytes(1000))
NOT_UTF8 = (b"\xed\xb2\x80", b"\xff\xfe", b"a\x00b", b"\xc3")


def placed(draw: random.Random, path: Path) -> str:
    """Put something that is not a file in a file's place."""
    kind = draw.choice(
        ["fifo", "directory", "link", "dangling", "loop", "empty", "device", "denied"]
    )
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "empty":
        path.touch()
    elif kind == "denied":
        path.write_bytes(b"\0" * 5000)
    else:
        targets = {
            "link": "../victim/kept.txt",
            "dangling": "../victim/made",
            "loop": path.name,
            "device": "/dev/zero",
        }
        path.symlink_to(targets[kind])
    return kind


def bytes_changed(draw: random.Random, path: Path) -> str:
    content = bytearray(path.read_bytes())
    kind = draw.choice(["cut", "flipped", "repeated"])
    if kind == "cut":
        del content[draw.randrange(len(content)) :]
    elif kind == "repeated":
        content += content[draw.randrange(len(content)) :]
    else:
        for _ in range(draw.choice([1, 5, 50, 500])):
            at = draw.randrange(min(len(content), draw.choice([200, 5000, 10**9])))
            content[at] = draw.randrange(256)
    path.write_bytes(content)
    return kind


def trace(draw: random.Random, path: Path) -> str:
    """Change a trace. Return a description of the change."""
    kind = draw.choice(["values"] * 6 + ["bytes", "placed", "schema", "journal"])
    if kind == "bytes":
        return bytes_changed(draw, path)
    if kind == "placed":
        return placed(draw, path)
    if kind == "journal":
        return _journal(draw, path)
    with closing(sqlite3.connect(path)) as db:
        tables = [
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        done = []
        for _ in range(draw.randint(1, 4)):
            with suppress(sqlite3.Error):
                done.append(_changed(draw, db, draw.choice(tables), kind))
        db.commit()
    return "; ".join(done)


def _changed(draw: random.Random, db: sqlite3.Connection, table: str, kind: str) -> str:
    if kind == "schema":
        endless = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"
        sql = draw.choice(
            [
                f"DROP TABLE {table}",
                f"DELETE FROM {table}",
                "PRAGMA user_version = 99",
                "PRAGMA user_version = 1",
                "PRAGMA user_version = -5",
                f"DROP TABLE {table}; CREATE VIEW {table} AS {endless}",
                (
                    f"CREATE TRIGGER r{draw.randrange(9)} AFTER INSERT ON {table} BEGIN DELETE FROM"
                    f" {table}; END"
                ),
                f"ALTER TABLE {table} ADD COLUMN more DEFAULT (load_extension('x'))",
                "PRAGMA journal_mode = WAL",
                "CREATE VIRTUAL TABLE odd USING fts5(a)",
                "PRAGMA page_size = 512; VACUUM",
                "PRAGMA encoding = 'UTF-16'; VACUUM",
            ]
        )
        db.executescript(sql)
        return sql
    column = draw.choice([row[1] for row in db.execute(f"PRAGMA table_info({table})")])
    where = draw.choice(["", f" WHERE rowid % {draw.randint(1, 3)} = 0"])
    group = draw.choice([TEXTS, TEXTS, NUMBERS, BLOBS, NOT_UTF8])
    value = draw.choice(group)  # type: ignore[arg-type]
    cast = "CAST(? AS TEXT)" if group is NOT_UTF8 else "?"
    db.execute(f"UPDATE {table} SET {column} = {cast}{where}", (value,))
    return f"{table}.{column} = {str(value)[:40]!r}{where}"


def _journal(draw: random.Random, path: Path) -> str:
    """Put a journal next to it, like that of a killed process."""
    victim = draw.choice([None, path.parent / "../victim/kept.txt", path.parent / VICTIM])
    Path(f"{path}-journal").write_bytes(journal_of(path, victim))
    return f"journal of {victim}"


def journal_of(path: Path, victim: Path | None) -> bytes:
    """Return a journal that SQLite rolls back
    (https://www.sqlite.org/fileformat.html#the_rollback_journal).

    With a victim, it is a journal of several databases: SQLite removes the file that it names.
    """
    magic = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
    content = path.read_bytes()
    size = int.from_bytes(content[16:18], "big")  # of a page (section 1.3.2 of the file format)
    header = magic + struct.pack(">IIIII", 1, 7, len(content) // size, 512, size)
    page = content[:size]
    checked = 7 + sum(page[at] for at in range(size - 200, 0, -200))
    journal = header.ljust(512, b"\0") + struct.pack(">I", 1) + page + struct.pack(">I", checked)
    if victim:
        name = os.fsencode(victim.resolve())
        journal += struct.pack(">I", 2**30 // size + 1) + name
        journal += struct.pack(">II", len(name), sum(name)) + magic
    return journal


def workload(draw: random.Random, path: Path) -> str:
    kind = draw.choice(["records"] * 4 + ["bytes", "bytes", "placed"])
    if kind == "bytes":
        return bytes_changed(draw, path)
    if kind == "placed":
        return placed(draw, path)
    content, done = bytearray(MAGIC), []
    database = draw.choice([b"/somewhere/t.db", b"/somewhere/t.db", b"\xff", b""])
    content += b"C" + struct.pack("=Q", 5) + b"S" + struct.pack("=I", len(database)) + database
    for number in range(1, draw.randint(2, 6)):
        text = draw.choice(
            [*SQL, "SELECT b FROM t WHERE a = ?", "INSERT INTO t VALUES (?, ?)", draw.choice(TEXTS)]
        )
        if "RECURSIVE" in text:
            text = "PRAGMA journal_mode"  # it would be interrupted after a minute
        encoded = text.encode("utf-8", "surrogatepass")
        content += b"T" + struct.pack("=I", len(encoded)) + encoded
        start, duration = draw.choice([number, 2**62, -1]), draw.choice([1000, 0, -1, 2**62])
        content += b"E" + FIXED.pack(
            start,
            duration,
            5,
            number,
            0,
            draw.randrange(12),
            0,
            draw.randrange(3),
            draw.choice([0, 2, 2**31]),
            number,
        )
        done.append(text[:40])
        one = draw.choice(
            [
                b"0",
                b"?",
                b"(" + struct.pack("=I", 2) + b"NN",
                b"(" + struct.pack("=I", 2**31) + b"N",
                (b"[" + struct.pack("=I", 1)) * 5000 + b"0",
                b"{" + struct.pack("=I", 1) + b"BIx",
                b"(" + struct.pack("=I", 1) + b"I" + struct.pack("=q", draw.choice([1, -(2**63)])),
            ]
        )
        content += one
        content += b"R" + struct.pack("=Qq", number, draw.choice([0, 1, -5, 2**62]))
    path.write_bytes(content)
    return f"records {done}"


def baseline(draw: random.Random, path: Path) -> str:
    kind = draw.choice(["values"] * 4 + ["bytes", "placed", "nested"])
    if kind == "bytes":
        return bytes_changed(draw, path)
    if kind == "placed":
        return placed(draw, path)
    if kind == "nested":
        path.write_text(
            draw.choice(
                [
                    "[" * 5000,
                    '{"tests":' * 100_000,
                    '{"format_version": 2, "statements": {}, "tests": ' + "[" * 200_000,
                ]
            )
        )
        return kind
    document = json.loads(path.read_text())
    places: list[tuple[dict[str, object], str]] = []
    todo: list[object] = [document]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            places += [(one, key) for key in one]
            todo += one.values()
    value: object = ""
    for _ in range(draw.randint(1, 3)):
        holder, key = draw.choice(places)
        value = draw.choice([*TEXTS, *NUMBERS, [], {}, [[1]], {"a": 1}, True])
        holder[key] = value
        if draw.random() < 0.3:
            holder[draw.choice(TEXTS)] = holder.pop(key)
    path.write_text(json.dumps(document))
    return f"{key} = {str(value)[:40]!r}"


def region(draw: random.Random, path: Path) -> str:
    kind = draw.choice(["bytes"] * 5 + ["placed"])
    return bytes_changed(draw, path) if kind == "bytes" else placed(draw, path)
