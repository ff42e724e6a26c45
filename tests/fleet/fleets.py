"""Fleets of made-up hosts: a trace of each is exported."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from queryprof.collect.reader import profile_from_connection
from queryprof.core import _core
from queryprof.fleet.flat import host_windows
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLE

DAY_NS = 86_400 * 10**9
READ, SLOW = "SELECT read FROM t WHERE a = ?", "SELECT slow FROM t WHERE a = ?"
FIRST_DAY_NS = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) * 10**9


class Work(NamedTuple):
    """The work of a host with one statement."""

    executions: int
    each_ns: int
    each_steps: int = 10
    plan: str = "SEARCH t USING INDEX i"
    span: str = ""


def add_host(
    directory: Path,
    host: str,
    statements: Mapping[str, Work],
    version: str | None = "1",
    day: int = 0,
    service: str = "shop",
    spans: Mapping[str, int] | None = None,
    start_ns: int = 0,
    is_absolute: bool = False,
) -> None:
    """Export the work of a host on a day, from `start_ns` on."""
    from queryprof.fleet.location import Directory
    from queryprof.fleet.parquet_files import write  # needs pyarrow

    store = TraceStore(":memory:")
    start = start_ns if is_absolute else FIRST_DAY_NS + day * DAY_NS + start_ns
    facts = {one.name: 0 if one.sql_type != "TEXT" else "" for one in TABLE["process"].columns}
    facts |= {one.name: None for one in TABLE["process"].columns if one.is_optional}
    facts |= {
        "host": host,
        "service": service,
        "version": version,
        "argv": "[]",
        "pid": crc32(f"{version} {sorted(statements)}".encode()),
    }
    facts |= {"start_unix_ns": start, "end_unix_ns": start + DAY_NS - 1, "clean_end": 1}
    columns = TABLE["aggregate"].columns
    with store.transaction():
        store.add("process", [[facts[one.name] for one in TABLE["process"].columns]])
        thread = store.id("thread", 1, "main")
        frame = store.id("frame", "load", "/srv/shop/db.py", 7, "user", 1)
        stack = store.id("stack", str(frame))
        for text, work in statements.items():
            statement = store.id("statement", text, None, "sqlite")
            total_ns = work.executions * work.each_ns
            values = dict.fromkeys([one.name for one in columns], 0) | {
                "statement_id": statement,
                "path_id": stack,
                "span_id": store.id("span", work.span),
                "thread_id": thread,
                "operation": "execute",
                "count": work.executions,
                "counted": work.executions,
                "total_ns": total_ns,
                "self_ns": total_ns,
                "min_ns": work.each_ns,
                "max_ns": work.each_ns,
                "execution_max_ns": work.each_ns,
                "vm_steps": work.executions * work.each_steps,
            }
            (number,) = store.add("aggregate", [[values[one.name] for one in columns]])
            bucket = _core.histogram_bucket(work.each_ns)
            store.add("histogram", [[number, bucket, work.executions]])
            store.add("plan", [[statement, "shop.db", work.plan]])
        for name, count in (spans or {}).items():
            row = dict.fromkeys(TABLE["span_total"].names, 0)
            row |= {"span_id": store.id("span", name), "count": count, "total_ns": count}
            store.add("span_total", [list(row.values())])
    for window in host_windows(profile_from_connection(store.connection)):
        write(Directory(str(directory)), window)
    store.close()
