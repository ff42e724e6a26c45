"""Measure the cost of recording a workload, and compare a replay's time with the program's.

The program measures its own database time, bare. Its workload is then replayed on copies of the
original database. Both alternate, each run in a new process. The output has means with 95%
intervals, and whether the replay's mean is in the program's interval. A point select on a
connection in memory shows the cost of recording: the minimum and the median of the processes'
shortest times.

    python benchmarks/replay.py [ROUNDS]
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from queryprof.replay.replaying import ReplaySetting, load_replay, play_on_copy
from queryprof.statistics.student import mean_with_95_interval

QUERYPROF = Path(sys.executable).with_name("queryprof")

PROGRAM = """
import random, sqlite3, sys, time
now, spent, draw = time.perf_counter_ns, 0, random.Random(1)
db = sqlite3.connect(sys.argv[1])
def timed(sql, values=()):
    global spent
    start = now()
    rows = db.execute(sql, values).fetchall()
    spent += now() - start
    return rows
for turn in range(400):
    for _ in range(20):
        timed("SELECT name, price FROM item WHERE id = ?", (draw.randrange(50_000),))
    timed("SELECT count(*), sum(price) FROM item WHERE kind = ?", (f"kind {draw.randrange(200)}",))
    for _ in range(5):
        timed("INSERT INTO item (name, kind, price) VALUES (?, ?, ?)", (f"new {turn}", "kind 1", 1.5))
    timed("UPDATE item SET price = price + 1 WHERE id = ?", (draw.randrange(50_000),))
    start = now()
    db.commit()
    spent += now() - start
print(spent / 1e9)
"""

FILL = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, kind TEXT, price REAL);
WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c LIMIT 50000)
INSERT INTO item SELECT x, 'item ' || x, 'kind ' || (x % 200), x * 1.5 FROM c;
CREATE INDEX item_kind ON item (kind);
"""

SELECTS = """
import sqlite3, time
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
db.executemany("INSERT INTO t VALUES (?, ?)", ((i, i) for i in range(1000)))
cursor, least = db.cursor(), float("inf")
for _ in range(300):
    start = time.perf_counter_ns()
    for number in range(400):
        cursor.execute("SELECT b FROM t WHERE a = ?", (number,))
        cursor.fetchone()
    least = min(least, (time.perf_counter_ns() - start) / 400)
print(least)
"""


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording_cost(folder, rounds)
        replayed_time(folder, rounds)


def said(*command: object) -> float:
    run = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    return float(run.stdout.split()[0])


def recording_cost(folder: Path, rounds: int) -> None:
    program = folder / "selects.py"
    program.write_text(SELECTS)
    trace = folder / "selects.qprof"
    recorded: tuple[object, ...] = (
        QUERYPROF,
        "run",
        "--no-report",
        "--record-workload",
        "-o",
        trace,
    )
    bare_ns, with_ns, mb_per_s = [], [], []
    for _ in range(rounds):
        bare_ns.append(said(sys.executable, program))
        start_s = time.perf_counter()
        with_ns.append(said(*recorded, program))
        took_s = time.perf_counter() - start_s
        written = sum(one.stat().st_size for one in folder.glob("selects.qprof-workload-*"))
        mb_per_s.append(written / 1e6 / took_s)
        for one in folder.glob("selects.qprof*"):
            one.unlink()
    for what, of in (("shortest", min), ("median", statistics.median)):
        bare, recorded_ns = of(bare_ns), of(with_ns)
        print(
            f"point select, {what}: bare {bare:,.0f} ns, with its workload recorded"
            f" {recorded_ns:,.0f} ns (x{recorded_ns / bare:.2f})"
        )
    print(f"{max(mb_per_s):.1f} MB of workload a second, the process's start and end in it")


def replayed_time(folder: Path, rounds: int) -> None:
    program, database, before = folder / "program.py", folder / "a.db", folder / "before.db"
    program.write_text(PROGRAM)
    subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sqlite3; sqlite3.connect({str(before)!r}).executescript('''{FILL}''')",
        ],
        check=True,
    )
    trace = folder / "x.qprof"
    shutil.copy(before, database)
    said(QUERYPROF, "run", "--no-report", "--record-workload", "-o", trace, program, database)
    replay = load_replay(str(trace), str(before))
    bare_s, replayed_s, rows = [], [], set()
    for _ in range(rounds):
        shutil.copy(before, database)
        bare_s.append(said(sys.executable, program, database))
        one = play_on_copy(replay, ReplaySetting())
        replayed_s.append(one.database_s)
        rows.add(tuple(sorted(one.digests.items())))
    for what, found in (("the program, bare", bare_s), ("replayed", replayed_s)):
        mean_s, half_s = mean_with_95_interval(found)
        print(f"{what:18} {mean_s:.3f} s ± {half_s or 0:.3f}, least {min(found):.3f}")
    mean_s, half_s = mean_with_95_interval(bare_s)
    inside = abs(statistics.fmean(replayed_s) - mean_s) <= (half_s or 0)
    print(
        f"the replay's mean is {'in' if inside else 'OUTSIDE of'} the program's interval; rows"
        f" {'equal' if len(rows) == 1 else 'DIFFER'}"
    )


if __name__ == "__main__":
    main()
