"""200 refused locks with known holders: threads, recorded processes, other processes, readers and
upgrades.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from queryprof.collect.reader import read_profile

pytestmark = [pytest.mark.slow, pytest.mark.once]

WORKER = """
import sqlite3, sys

def hold(path, how):
    db = sqlite3.connect(path, isolation_level=None, timeout=0)
    if how == "write":
        db.execute("BEGIN IMMEDIATE")  # process holds
    else:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM t").fetchall()
    return db

for line in sys.stdin:
    how, path = line.split(" ", 1)
    db = hold(path.strip(), how)
    print("held", flush=True)
    sys.stdin.readline()
    db.execute("ROLLBACK")
    db.close()
    print("released", flush=True)
"""

PROGRAM = """
import json, os, random, sqlite3, subprocess, sys, threading
from queryprof.hooks.lock_notes import NoteTimeBudget
NoteTimeBudget.FREE_S = 1000.0  # a program that is refused so often would get notes on some alone
random.seed(7)

class Process:
    def __init__(self, is_recorded):
        kept = {k: v for k, v in os.environ.items() if is_recorded or not k.startswith("QUERYPROF")}
        pipe = subprocess.PIPE
        self.running = subprocess.Popen([sys.executable, "worker.py"], stdin=pipe, stdout=pipe, text=True, env=kept)
        self.pid = self.running.pid
    def send(self, line, answer):
        self.running.stdin.write(line + "\\n")
        self.running.stdin.flush()
        assert self.running.stdout.readline().strip() == answer
    def hold(self, path, how):
        self.send(f"{how} {path}", "held")
    def release(self):
        self.send("release", "released")

class Thread:
    pid = os.getpid()
    def hold(self, path, how):
        self.held, self.end = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, args=(path,))
        self.thread.start()
        self.held.wait()
    def run(self, path):
        db = sqlite3.connect(path, isolation_level=None, timeout=0)
        db.execute("BEGIN IMMEDIATE")  # thread holds
        self.held.set()
        self.end.wait()
        db.execute("ROLLBACK")
        db.close()
    def release(self):
        self.end.set()
        self.thread.join()

holders = {"thread": Thread(), "process": Process(True), "foreign": Process(False)}
for number in range(200):
    kind = random.choice(["wait", "wait", "upgrade", "reader", "snapshot"])
    mode = "wal" if kind == "snapshot" else "delete" if kind == "reader" else random.choice(["wal", "delete"])
    name = random.choice(["process", "foreign"] if kind == "reader" else list(holders))
    holder, path = holders[name], f"{number}.db"
    db = sqlite3.connect(path, isolation_level=None, timeout=0)
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("CREATE TABLE t (a)")
    refused = "INSERT INTO t VALUES (1)"
    if kind in ("upgrade", "snapshot"):
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM t").fetchall()
    if kind == "snapshot":
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("INSERT INTO t VALUES (2)")
        other.close()
    else:
        holder.hold(path, "read" if kind == "reader" else "write")
    if kind == "reader":
        db.execute("BEGIN")
        db.execute("INSERT INTO t VALUES (1)")
        refused = "COMMIT"
    try:
        db.execute(refused)
    except sqlite3.OperationalError as error:
        assert str(error) == "database is locked", error
        note = "\\n".join(getattr(error, "__notes__", []))
    else:
        raise AssertionError(kind)
    if kind != "snapshot":
        holder.release()
    db.execute("ROLLBACK") if db.in_transaction else None
    db.close()
    print(json.dumps([kind, name, holder.pid, os.getpid(), note]))
"""


def test_who_refused(tmp_path: Path) -> None:
    """Each refusal names the holder's process, and at least 98% name its line. Upgrades are told
    apart from waits.
    """
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "app.py").write_text(PROGRAM)
    command = [
        Path(sys.executable).with_name("queryprof"), "run", "--explain-locks", "--no-report",
        "-o", "t.qprof", "app.py",
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    refusals = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(refusals) == 200
    lines = {
        "thread": line_of("app.py", "thread holds"),
        "process": line_of("worker.py", "process holds"),
    }
    wrong: list[object] = []
    with_line = wanted = 0
    for kind, name, pid, own, note in refusals:
        if kind == "snapshot":
            continue  # no lock is held: another connection has written
        who = "this process" if pid == own else f"process {pid}"
        if who not in note or (kind == "reader") != ("waits for readers" in note):
            wrong.append((kind, name, note))
        if ("no timeout helps" in note) != (kind == "upgrade"):
            wrong.append((kind, name, note))
        if kind in ("wait", "upgrade") and name in lines:
            wanted += 1
            with_line += lines[name] in note
    assert wrong == []
    assert with_line >= 0.98 * wanted
    message = Counter[str]()
    for error in read_profile("t.qprof").errors:
        message[error.exception.partition("(")[2]] += error.count
    kinds = Counter(kind for kind, *_ in refusals)
    assert message == {
        "SQLITE_BUSY)": kinds["wait"] + kinds["reader"],
        "SQLITE_BUSY of a read transaction)": kinds["upgrade"],
        "SQLITE_BUSY_SNAPSHOT)": kinds["snapshot"],
    }


def line_of(file: str, comment: str) -> str:
    lines = Path(file).read_text().splitlines()
    (number,) = (at for at, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))
    return f"{os.path.abspath(file)}:{number}"
