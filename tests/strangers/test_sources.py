"""Only source files that the recording saw are read, because a trace may name any of the reader's
files.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import Run
from queryprof.collect.reader import read_profile
from queryprof.model import Frame
from queryprof.program.source_facts import SourceFacts, is_from_this_boot
from queryprof.program.sources import Sources

pytestmark = pytest.mark.once

PROGRAM = """
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE t (a)")
for i in range(200):
    db.execute("SELECT a FROM t WHERE a = ?", (i,)).fetchall()  # Hush41
"""
SECRET = 'KEY = "Hush42"\n' * 5 + "for i in range(3):\n    print(i)\n"


@pytest.fixture
def trace(queryprof: Run, script: Callable[[str], Path]) -> str:
    program = script(PROGRAM)
    done = queryprof("run", "--no-report", "-o", "x.qprof", program)
    assert done.returncode == 0, done.stderr
    return str(program)


def change(*sqls: str) -> None:
    with closing(sqlite3.connect("x.qprof")) as db:
        for sql in sqls:
            db.execute(sql)
        db.commit()


def page(queryprof: Run) -> str:
    """Return the page. Its data is not compressed, because it is small."""
    done = queryprof("html", "x.qprof", "-o", "-")
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def findings(queryprof: Run) -> list[Any]:
    done = queryprof("analyze", "x.qprof", "--format", "json", "--fail-on", "none")
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout)["findings"])


def test_lines_of_the_program_are_shown_while_they_are_so(queryprof: Run, trace: str) -> None:
    assert set(read_profile("x.qprof").sources) == {trace}
    assert "# Hush41" in page(queryprof)
    frame = Frame("<module>", trace, 6)
    loop = Sources(read_profile("x.qprof").sources).loop_at(frame)
    assert loop == Frame("<module>", trace, 5)
    Path(trace).write_text(PROGRAM.replace("# Hush41", "# Hush43"))
    assert "# Hush4" not in page(queryprof)


def test_no_other_file_is_shown(queryprof: Run, trace: str, tmp_path: Path) -> None:
    """No file is shown without a hash, or with the hash of another file."""
    secret = tmp_path / "settings.py"
    secret.write_text(SECRET)
    change(f"UPDATE frame SET file = '{secret}'")
    assert "Hush42" not in page(queryprof)
    assert "settings.py:6" not in json.dumps(findings(queryprof))
    change(f"UPDATE source SET file = '{secret}'")
    assert "Hush42" not in page(queryprof)
    change(f"UPDATE source SET sha256 = '', bytes = {secret.stat().st_size}")
    assert "Hush42" not in page(queryprof)
    change(f"UPDATE source SET sha256 = '{sha256(secret.read_bytes()).hexdigest()}'")
    assert "Hush42" in page(queryprof)  # only a process that knows the content can have this hash
    change("DELETE FROM source")
    assert "Hush42" not in page(queryprof)
    del trace


def test_of_a_strangers_region_no_file_is_hashed() -> None:
    """Otherwise any named file would be shown: only this machine knows the number of its start."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    here = boot.read_bytes().strip() if boot.exists() else b""

    class Region(SimpleNamespace):
        def __getitem__(self, name: str) -> bytes:
            assert name == "boot"
            return self.boot  # type: ignore[no-any-return]

    def is_hashed(path: str, of: bytes) -> bool:
        return is_from_this_boot(Region(path=path, boot=of.ljust(40, b"\0")))  # type: ignore[arg-type]

    assert is_hashed("", b"")
    assert is_hashed("/dev/shm/x", here) == bool(here)
    assert not is_hashed("/dev/shm/x", b"11111111-2222-3333-4444-555555555555")
    assert not is_hashed("x.qprof.7.abc.live", b"")


def test_what_is_no_source_has_no_hash(tmp_path: Path) -> None:
    kept = tmp_path / "a.py"
    kept.write_text("pass\n")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "text.txt").write_text("pass")
    (tmp_path / "large.py").write_bytes(b"#" * 3_000_000)
    (tmp_path / "folder.py").mkdir()
    files = [
        *(str(path) for path in tmp_path.iterdir()),
        "/dev/zero",
        "\0.py",
        "none.py",
        "<string>",
    ]
    changed_unix_ns = kept.stat().st_mtime_ns
    assert [row[0] for row in SourceFacts().rows_of(files, changed_unix_ns)] == [str(kept)]
    assert not list(SourceFacts().rows_of(files, changed_unix_ns - 1))
