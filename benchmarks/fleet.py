"""Measure windows, Parquet files and queries of a fleet against limits: `make bench-fleet`.

A service of 150 statements in 40 requests and four threads is recorded. Its trace is exported a
hundred times, and DuckDB makes a fleet of HOSTS x DAYS from the exports. Each command runs in its
own process; the figures are its CPU time and largest memory.

    python benchmarks/fleet.py [HOSTS DAYS]     [default: 1000 30]

`ship` is measured on a window of 8 processes of the service. `fleet compact` is measured on an hour
of HOSTS hosts, with a file for each.

Exit status 1: a figure exceeds its limit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

QUERYPROF = Path(sys.executable).with_name("queryprof")
TRACES = 100
SERVICE = """
import random, sqlite3, sys, threading
import queryprof
chance = random.Random(7)
TABLES = [f"t{n}" for n in range(12)]
body = ["import random, queryprof"]
for request in range(40):
    body.append(f"def request_{request}(db):")
    body.append(f"    with queryprof.span('GET /{request}'):")
    for place in range(chance.randint(3, 5)):
        table, column = chance.choice(TABLES), chance.choice("abc")
        kind = ["id = ?", "a = ?", "b = ? ORDER BY c LIMIT 20", "c = ? LIMIT 5"][chance.randrange(4)]
        sql = f"SELECT id, {column} AS x{chr(97 + request % 26)}{request // 26 * 'z'}{'y' * place} FROM {table} WHERE {kind}"
        body.append(f"        db.execute({sql!r}, (random.randrange(900),)).fetchall()")
    body.append("        db.commit()")
exec(compile("\\n".join(body), "requests.py", "exec"), requests := {})
file = (sys.argv[1:] or ["service"])[0] + ".db"
db = sqlite3.connect(file); db.execute("PRAGMA journal_mode=WAL")
for table in TABLES:
    db.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, a, b, c)")
    db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", [(i, i, i % 50, i % 7) for i in range(1000)])
db.commit()
def work(number):
    own = sqlite3.connect(file)
    draws = random.Random(number)
    for _ in range(200):
        requests[f"request_{draws.randrange(40)}"](own)
    own.close()
if sys.argv[1:]:
    queryprof.install(sys.argv[1], window="1h")
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
BORDERS = """
import os, sqlite3, statistics, sys, time
import queryprof
from queryprof.core import _core
sums = int(sys.argv[1])
queryprof.install("b.qprof", window="1d")
connection = sqlite3.connect(":memory:")
took = []
for _ in range(12):
    for number in range(sums // 2):  # an execution and a fetch each
        name = "".join(chr(97 + int(digit)) for digit in str(number))
        connection.execute(f"SELECT 1 AS {name}").fetchone()
    start = time.perf_counter()
    _core.end_window(time.time_ns())
    took.append((time.perf_counter() - start) * 1e3)
print(statistics.median(took))
os._exit(0)
"""
QUESTIONS = {
    "the vital few": ("report",),
    "by host": ("report", "--by", "host"),
    "compare": ("compare", "1", "2"),
    "outliers": ("outliers",),
    "trend": ("trend",),
    "plans": ("plans",),
}
QUESTION_S, QUESTION_MB = 8.0, 600.0


def measured(*command: object, status: tuple[int, ...] = (0,)) -> tuple[float, float]:
    """Run a command. Returns its CPU seconds and its largest memory in MB."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode not in status:
        raise SystemExit(f"{command[1]} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def make_fleet(base: Path, out: Path, hosts: int, days: int) -> int:
    """Write a file per day, and return the number of rows.

    The times differ slightly between hosts.
    """
    (one,) = base.glob("aggregate/*/*/*.parquet")
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    described = connection.execute(
        "DESCRIBE SELECT * FROM read_parquet($one, hive_partitioning = false)", {"one": str(one)}
    ).fetchall()

    def column(name: str, day: int) -> str:
        if name == "version":
            return f"'{2 if day >= days - 3 else 1}' AS version"
        if name == "host":
            return "'web-' || h AS host"
        if name in ("window_start", "window_end"):
            at = day + (name == "window_end")
            return f"TIMESTAMPTZ '2026-10-01 00:00:00+00' + to_days({at}) AS {name}"
        return f"CAST({name} * k AS BIGINT) AS {name}" if name.endswith("_ns") else name

    rows = 0
    for day in range(days):
        date = time.strftime("%Y-%m-%d", time.gmtime(1_790_812_800 + 86_400 * day))
        folder = out / "aggregate" / "service=shop" / f"date={date}"
        folder.mkdir(parents=True)
        columns = ", ".join(column(name, day) for name, *_ in described)
        connection.execute(
            f"COPY (SELECT {columns} FROM read_parquet('{one}', hive_partitioning = false),"
            f" (SELECT h, 1 + 0.1 * random() AS k FROM range({hosts}) AS r(h))"
            " ORDER BY statement_id, path, operation, version, host)"
            f" TO '{folder}/day.parquet' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 100000,"
            " KV_METADATA {'queryprof.schema': '1', 'queryprof.service': 'shop'})"
        )
        (count,) = connection.execute(
            f"SELECT count(*) FROM read_parquet('{folder}/day.parquet')"
        ).fetchall()[0]
        rows += count
    connection.close()
    return rows


def make_hour(base: Path, out: Path, hosts: int) -> None:
    """Write a file of one hour for each host, with slightly different times."""
    import pyarrow.parquet as pq

    (one,) = base.glob("aggregate/*/*/*.parquet")
    table = pq.ParquetFile(one).read()
    folder = out / "aggregate" / "service=shop" / "date=2026-10-01"
    folder.mkdir(parents=True)
    at = table.schema.get_field_index("host")
    for host in range(hosts):
        names = [f"web-{host}"] * table.num_rows
        named = table.set_column(at, table.schema.field("host"), [names])
        facts = {**(named.schema.metadata or {}), b"queryprof.processes": b"[]"}
        named = named.replace_schema_metadata(facts)
        pq.write_table(named, folder / f"0000-web-{host}-{host:016x}.parquet", compression="zstd")


def of_merges(folder: Path) -> Iterator[tuple[str, float, float, str]]:
    """Measure the merging of many traces."""
    small = folder / "small"
    small.mkdir()
    shop = Path(__file__).parents[1] / "examples" / "requests" / "shop.py"
    one = folder / "shop.qprof"
    subprocess.run([QUERYPROF, "run", "--no-report", "-o", one, shop], check=True, stdout=-3)
    for number in range(1000):
        shutil.copy(one, small / f"{number}.qprof")
    cpu_s, _ = measured(QUERYPROF, "merge", folder / "merged.qprof", small)
    yield "merge of 1,000 traces of few sums", cpu_s, 5.0, "s CPU"
    shutil.rmtree(small)
    for number in range(TRACES, 2 * TRACES):
        shutil.copy(folder / "service.qprof", folder / "many" / f"{number}.qprof")
    collapsed = folder / "collapsed.qprof"
    cpu_s, memory = measured(QUERYPROF, "merge", "--collapse", collapsed, folder / "many")
    yield f"merge --collapse of {2 * TRACES} traces", cpu_s, 10.0, "s CPU"
    yield "its memory", memory, 100.0, "MB"
    cpu_s, _ = measured(QUERYPROF, "report", collapsed)
    yield "report of it", cpu_s, 1.0, "s CPU"


def of_upkeep(folder: Path, hosts: int) -> Iterator[tuple[str, float, float, str]]:
    """Measure `ship` and `fleet compact`."""
    place = folder / "place"
    place.mkdir()
    recorded = [
        subprocess.Popen([sys.executable, "service.py", place / f"{n}.qprof"], cwd=folder)
        for n in range(8)
    ]
    if any(process.wait() for process in recorded):
        raise SystemExit("a process of the service failed")
    cpu_s, memory = measured(QUERYPROF, "fleet", "ship", "--to", folder / "sent", "--once", place)
    yield "ship, the windows of 8 processes", cpu_s, 2.0, "s CPU"
    yield "its memory", memory, 150.0, "MB"
    made = [sys.executable, __file__, "hour", folder / "base", folder / "hour", str(hosts)]
    subprocess.run(made, check=True)
    before = bytes_below(folder / "hour")
    cpu_s, memory = measured(QUERYPROF, "fleet", "compact", folder / "hour")
    yield f"compact, an hour of {hosts:,} hosts", cpu_s, 9.0, "s CPU"
    yield "its memory", memory, 1500.0, "MB"
    after = sum(path.stat().st_size for path in (folder / "hour").rglob("day-*"))
    yield "size of the day's file, of its sources", 100 * after / before, 50.0, "%"


def figures(folder: Path, hosts: int, days: int) -> Iterator[tuple[str, float, float, str]]:
    """Yield each figure: its name, value, limit and unit."""
    for sums, limit in ((1_709, 1.5), (15_000, 3.0)):
        found = subprocess.run(
            [sys.executable, "-c", BORDERS, str(sums)],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
        )
        yield f"border of a window, {sums:,} sums", float(found.stdout), limit, "ms"
    (folder / "service.py").write_text(SERVICE)
    subprocess.run(
        [QUERYPROF, "run", "--no-report", "-o", "service.qprof", "service.py"],
        check=True,
        cwd=folder,
    )
    trace = folder / "service.qprof"
    (folder / "many").mkdir()
    for number in range(TRACES):
        shutil.copy(trace, folder / "many" / f"{number}.qprof")
    cpu_s, memory = measured(QUERYPROF, "fleet", "export", "-o", folder / "base", folder / "many")
    yield f"export of {TRACES} traces", cpu_s, 8.0, "s CPU"
    yield "its memory", memory, 200.0, "MB"
    share = bytes_below(folder / "base") / trace.stat().st_size
    yield "size of the files, of the trace's", 100 * share, 10.0, "%"
    yield from of_merges(folder)
    yield from of_upkeep(folder, hosts)
    # A separate process, because a command's largest memory is at least its parent's.
    made = [
        sys.executable,
        __file__,
        "make",
        folder / "base",
        folder / "fleet",
        str(hosts),
        str(days),
    ]
    rows = int(subprocess.run(made, capture_output=True, text=True, check=True).stdout)
    for name, options in QUESTIONS.items():
        cpu_s, memory = measured(QUERYPROF, "fleet", *options, folder / "fleet", status=(0, 1))
        yield f"{name}, of {rows:,} sums", cpu_s, QUESTION_S, "s CPU"
        yield "its memory", memory, QUESTION_MB, "MB"


def main() -> None:
    """Print each figure with its limit."""
    if sys.argv[1:2] == ["make"]:
        base, out, *size = sys.argv[2:]
        print(make_fleet(Path(base), Path(out), *map(int, size)))
        return
    if sys.argv[1:2] == ["hour"]:
        base, out, hosts_given = sys.argv[2:]
        make_hour(Path(base), Path(out), int(hosts_given))
        return
    hosts, days = map(int, sys.argv[1:3] or ("1000", "30"))
    beyond = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, figure, limit, unit in figures(Path(folder), hosts, days):
            beyond += figure > limit
            mark = "  BEYOND" if figure > limit else ""
            print(f"{name:48} {figure:9.2f} {unit:6} limit {limit:6g}{mark}", flush=True)
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    main()
