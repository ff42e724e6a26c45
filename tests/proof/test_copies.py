"""The database is read and never written; copies are consistent, and none is left."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Run
from queryprof.planner.judging import BEFORE, Judge

pytestmark = pytest.mark.once

PROGRAM = """
    import sqlite3, sys
    db = sqlite3.connect(sys.argv[1])
    for i in range(3):
        db.execute("SELECT b FROM t WHERE a = ?", (i,)).fetchall()
"""
QUERYPROF = Path(sys.executable).with_name("queryprof")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a #database%?.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t (a INTEGER, b TEXT)")
    db.executemany("INSERT INTO t VALUES (?, ?)", ((i, f"text {i}") for i in range(20_000)))
    db.commit()
    db.close()
    return path


@pytest.fixture
def trace(queryprof: Run, tmp_path: Path, database: Path) -> Path:
    (tmp_path / "program.py").write_text("\n".join(line[4:] for line in PROGRAM.splitlines()))
    queryprof(
        "run", "--parameters", "--no-report", "-o", "x.qprof", tmp_path / "program.py", database
    )
    return tmp_path / "x.qprof"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    return place


def state(database: Path) -> dict[str, tuple[str, int]]:
    """Return the contents and the last change of the database and the files next to it."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(database.parent.glob(f"{database.name[:4]}*"))
    }


@pytest.mark.parametrize("how", ["closed", "log, closed", "log, open", "log, killed"])
@pytest.mark.repeats
def test_nothing_is_written(
    queryprof: Run, database: Path, trace: Path, temporary: Path, how: str
) -> None:
    db = sqlite3.connect(database)
    if "log" in how:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("INSERT INTO t VALUES (-1, 'in the log')")
        db.commit()
    if "closed" in how:
        db.close()
    if "killed" in how:
        kept = {p.name: p.read_bytes() for p in database.parent.glob(f"{database.name}*")}
        db.close()
        for name, content in kept.items():
            (database.parent / name).write_bytes(content)
    before = state(database)
    message = queryprof("analyze", trace, "--db", database, "--prove", "--budget", "1h").stdout
    assert (
        f"with SQLite {sqlite3.sqlite_version}" in message
    )  # it has measured; the result depends on the clock
    assert state(database) == before
    assert list(temporary.iterdir()) == []
    if "open" in how:
        db.close()


@pytest.mark.slow
def test_a_killed_command_leaves_nothing(database: Path, trace: Path, temporary: Path) -> None:
    before = state(database)
    for delay_s in (0.2, 0.4, 0.6, 0.8, 1.2):
        command = subprocess.Popen(
            [QUERYPROF, "analyze", trace, "--db", database, "--prove"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay_s)
        command.send_signal(signal.SIGKILL)
        command.wait()
    for _ in range(600):  # a separate process removes the folder
        if not list(temporary.iterdir()):
            break
        time.sleep(0.1)
    assert list(temporary.iterdir()) == []
    assert state(database) == before


@pytest.mark.slow
def test_a_full_disk(database: Path, trace: Path, temporary: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    before = state(database)
    result = subprocess.run(
        [QUERYPROF, "analyze", trace, "--db", database, "--prove"],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "it cannot be read or copied" in result.stderr
    assert list(temporary.iterdir()) == []
    assert state(database) == before


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.repeats
def test_a_copy_is_of_one_moment(tmp_path: Path, mode: str) -> None:
    """Two tables get each row together, while copies are made."""
    path, ends = tmp_path / "t.db", threading.Event()
    setup = sqlite3.connect(path)
    setup.execute(f"PRAGMA journal_mode = {mode}")
    setup.executescript("CREATE TABLE one (a); CREATE TABLE two (a)")
    setup.close()

    def write() -> None:
        db = sqlite3.connect(path, isolation_level=None, timeout=30)
        db.execute("PRAGMA synchronous = OFF")
        while not ends.is_set():
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO one VALUES (?)", (b"x" * 500,))
            db.execute("INSERT INTO two VALUES (?)", (b"x" * 500,))
            db.execute("COMMIT")
        db.close()

    writer = threading.Thread(target=write)
    writer.start()
    with Judge() as judge:
        counts = []
        while len(counts) < 10:
            judge.copy_database(f"{path.as_uri()}?mode=ro", BEFORE)
            rows = judge.rows(
                BEFORE, "SELECT (SELECT count(*) FROM one), (SELECT count(*) FROM two)"
            )
            counts.append(rows[0])
            assert judge.rows(BEFORE, "PRAGMA integrity_check") == [("ok",)]
    ends.set()
    writer.join()
    assert all(one == two for one, two in counts)
    assert counts[0] < counts[-1]


@pytest.mark.slow
def test_an_interrupt_ends_with_the_best_so_far(
    database: Path, trace: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    db = sqlite3.connect(database)
    db.executemany("INSERT INTO t VALUES (?, ?)", ((i, f"text {i}") for i in range(300_000)))
    db.commit()
    db.close()
    command = subprocess.Popen(
        [QUERYPROF, "analyze", trace, "--db", database, "--prove"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    while not any(folder.iterdir()) and command.poll() is None:  # until it makes its copies
        time.sleep(0.01)
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert "Traceback" not in err
    assert command.returncode in (0, -signal.SIGINT)
    assert "Proved" in out or command.returncode == -signal.SIGINT


def bad(queryprof: Run, trace: Path, database: Path) -> str:
    result = queryprof("analyze", trace, "--db", database, "--prove", "--budget", "1h")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1, result.stderr
    return str(result.stderr)


def test_a_temporary_table_that_is_gone_is_no_other_database(
    queryprof: Run, script: Callable[..., Path]
) -> None:
    """All statements need the table, so none is measured; the findings are printed."""
    text = """
import sqlite3
db = sqlite3.connect("app.db", isolation_level=None)
db.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY)")
db.execute("CREATE TEMP TABLE wanted (id INTEGER)")
for number in range(300):
    db.execute("INSERT INTO wanted VALUES (?)", (number,))
db.execute("SELECT count(*) FROM t JOIN wanted USING (id)").fetchall()
db.execute("DROP TABLE wanted")
"""
    queryprof("run", "--parameters", "--no-report", "-o", "x.qprof", script(text))
    result = queryprof("analyze", "x.qprof", "--prove", "--db", "app.db")
    assert result.returncode == 0, result.stderr
    assert "no such table: wanted" in result.stdout


@pytest.mark.slow
def test_bad_input_is_one_line(queryprof: Run, tmp_path: Path, trace: Path, database: Path) -> None:
    assert "no such file" in bad(queryprof, trace, tmp_path / "none.db")
    (tmp_path / "noise.db").write_bytes(os.urandom(9000))
    assert "not a SQLite database, or it is encrypted" in bad(
        queryprof, trace, tmp_path / "noise.db"
    )
    (tmp_path / "empty.db").write_bytes(b"")
    assert "missing: table t" in bad(queryprof, trace, tmp_path / "empty.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE u (a)")
    other.close()
    assert "missing: table t" in bad(queryprof, trace, tmp_path / "other.db")
    newer = sqlite3.connect(tmp_path / "newer.db")
    newer.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, renamed)")
    newer.close()
    assert "its schema has changed; missing: column" in bad(queryprof, trace, tmp_path / "newer.db")
    content = database.read_bytes()
    (tmp_path / "cut.db").write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    assert "damaged" in bad(queryprof, trace, tmp_path / "cut.db")
    (tmp_path / "short.db").write_bytes(content[: len(content) // 2])
    assert "damaged" in bad(queryprof, trace, tmp_path / "short.db")
    assert "--prove needs one --db" in queryprof("analyze", trace, "--prove").stderr
    message = queryprof("analyze", trace, "--db", database, "--format", "sql").stderr
    assert "--format sql needs --prove" in message


@pytest.mark.slow
def test_what_is_unknown_is_planned_and_not_measured(
    queryprof: Run, tmp_path: Path, database: Path
) -> None:
    """Functions, collations and tables are missing here, or the schema has changed."""
    program = tmp_path / "own.py"
    program.write_text(
        "import sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1])\n"
        "db.create_function('own', 1, lambda a: a)\n"
        "db.create_collation('ours', lambda a, b: (a > b) - (a < b))\n"
        "db.execute('CREATE TEMP TABLE later (a)')\n"
        "for i in range(3):\n"
        "    db.execute('SELECT b FROM t WHERE a = ?', (i,)).fetchall()\n"
        "    db.execute('SELECT b FROM t WHERE own(a) = ?', (i,)).fetchall()\n"
        "    db.execute('SELECT b FROM t WHERE b = ? COLLATE ours', (i,)).fetchall()\n"
        "    db.execute('INSERT INTO later SELECT a FROM t')\n"
        "    db.execute('SELECT a FROM later').fetchall()\n"
    )
    queryprof("run", "--parameters", "--no-report", "-o", "x.qprof", program, database)
    message = queryprof("analyze", "x.qprof", "--db", database, "--prove", "--budget", "1h").stdout
    assert "CREATE INDEX t_a_idx ON t (a);" in message
    for reason in (
        "no such function: own",
        "no such collation sequence: ours",
        "no such table: later",
    ):
        assert reason in message
