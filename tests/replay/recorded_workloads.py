"""Programs that are recorded with their workload."""

from __future__ import annotations

from pathlib import Path

from conftest import Run

PROGRAM = """
    import random, sqlite3, sys
    db = sqlite3.connect(sys.argv[1])
    if sys.argv[2:]:
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c INTEGER)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?)", ((i, f"b{i}", i % 50) for i in range(5000)))
        db.commit()
        sys.exit()
    draw = random.Random(1)
    for i in range(60):
        db.execute("SELECT count(*), sum(a) FROM t WHERE c = ?", (draw.randrange(50),)).fetchall()
        db.execute("INSERT INTO t (b, c) VALUES (?, ?)", (f"new {i}", i))
        if i % 10 == 0:
            db.commit()
        elif i % 10 == 5:
            db.rollback()
    with db:
        db.execute("DELETE FROM t WHERE c = 3")
    other = sqlite3.connect(sys.argv[1], isolation_level=None)
    other.execute("UPDATE t SET b = 'auto' WHERE a = 7")
    other.execute("BEGIN"); other.execute("DELETE FROM t WHERE a = 8"); other.execute("COMMIT")
    other.executescript("UPDATE t SET c = 8 WHERE c = 9; UPDATE t SET b = 'x' WHERE c = 8")
    sqlite3.connect(":memory:").execute("CREATE TABLE u (a)")
    print(other.execute("SELECT count(*), sum(a), sum(length(b)) FROM t").fetchone())
"""


def recorded(queryprof: Run, program: Path, *arguments: object, **options: object) -> None:
    result = queryprof(
        "run", "--record-workload", "--no-report", "-o", "x.qprof", program, *arguments, **options
    )
    assert result.returncode == 0, result.stderr
