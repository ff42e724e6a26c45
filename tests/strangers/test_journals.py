"""A journal next to an untrusted trace: SQLite would follow the path in it, and remove
that file.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from strangers import mutations

from queryprof.errors import TraceError
from queryprof.trace.opening import opened_finished_trace
from queryprof.trace.store import TraceStore

pytestmark = pytest.mark.once


def test_a_file_that_a_journal_names_stays(tmp_path: Path) -> None:
    """The end shows that SQLite itself removes it: 3.40 does, 3.53 no longer does."""
    trace, kept = tmp_path / "x.qprof", tmp_path / "kept.txt"
    kept.write_text("kept")
    TraceStore(str(trace)).close()
    journal = Path(f"{trace}-journal")
    journal.write_bytes(mutations.journal_of(trace, kept))
    before = journal.read_bytes()
    with pytest.raises(TraceError, match="names another file"), opened_finished_trace(str(trace)):
        pass
    assert (kept.exists(), journal.read_bytes()) == (True, before)
    with closing(sqlite3.connect(trace)) as db:
        db.execute("SELECT count(*) FROM process").fetchone()
    assert not kept.exists() or sqlite3.sqlite_version_info >= (3, 41)


def test_a_trace_with_a_log_is_read_without_a_file_beside_it(tmp_path: Path) -> None:
    """No recording writes such a trace. Reading it must write nothing into the reader's folder."""
    trace = tmp_path / "x.qprof"
    TraceStore(str(trace)).close()
    with closing(sqlite3.connect(trace)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    before = trace.read_bytes()
    with opened_finished_trace(str(trace)):
        assert list(tmp_path.iterdir()) == [trace]
    assert (list(tmp_path.iterdir()), trace.read_bytes()) == ([trace], before)


def test_a_link_leads_to_no_other_journal(tmp_path: Path) -> None:
    """SQLite reads the journal next to a link's target, so that journal is checked."""
    folder, kept, link = tmp_path / "d", tmp_path / "kept.txt", tmp_path / "a.qprof"
    folder.mkdir()
    kept.write_text("kept")
    TraceStore(str(folder / "real.qprof")).close()
    journal = folder / "real.qprof-journal"
    journal.write_bytes(mutations.journal_of(folder / "real.qprof", kept))
    link.symlink_to(folder / "real.qprof")
    Path(f"{link}-journal").write_bytes(b"x" * 600)
    with pytest.raises(TraceError, match="names another file"), opened_finished_trace(str(link)):
        pass
    assert kept.exists()
    assert journal.exists()
