"""Only files that queryprof made are replaced, and nothing is written through a link."""

from __future__ import annotations

import marshal
import os
import pstats
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Run

pytestmark = pytest.mark.once

PROGRAM = (
    "import sqlite3\nfor i in range(9): sqlite3.connect(':memory:').execute('SELECT"
    " 1').fetchall()\n"
)

EXPORTS = {
    "pstats": "x.prof",
    "speedscope": "x.speedscope.json",
}


@pytest.fixture
def trace(queryprof: Run, script: Callable[[str], Path]) -> Path:
    done = queryprof("run", "--no-report", "-o", "x.qprof", script(PROGRAM))
    assert done.returncode == 0, done.stderr
    return Path("x.qprof")


@pytest.mark.parametrize("form", EXPORTS)
@pytest.mark.repeats
def test_an_export_replaces_only_its_like(queryprof: Run, trace: Path, form: str) -> None:
    """A file of another command, a file of another program, and a link stay."""
    export, path = ("export", "--format", form, trace), Path(EXPORTS[form])
    assert queryprof(*export).returncode == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = queryprof(*export)
    assert again.returncode == 0, again.stderr
    Path("kept").write_text("kept")
    for make in (
        lambda: path.write_text("a person's own"),
        lambda: path.write_bytes(marshal.dumps({})),
        lambda: path.symlink_to("kept"),
        lambda: path.symlink_to("made later"),
    ):
        path.unlink()
        make()
        before = os.readlink(path) if path.is_symlink() else path.read_bytes()
        refused = queryprof(*export)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert str(path) in refused.stderr
        assert before == (os.readlink(path) if path.is_symlink() else path.read_bytes())
    assert Path("kept").read_text() == "kept"
    assert not Path("made later").exists()
    assert not list(Path.cwd().glob(".queryprof-*"))


def test_an_export_to_a_stream_is_written(queryprof: Run, trace: Path) -> None:
    """A device and a pipe contain no data that could be lost."""
    assert queryprof("export", "--format", "speedscope", "-o", "/dev/null", trace).returncode == 0
    result = queryprof("export", "--format", "speedscope", "-o", "/dev/stdout", trace)
    assert "SELECT ?" in result.stdout


@pytest.mark.slow
def test_functions_are_no_export(queryprof: Run, script: Callable[[str], Path]) -> None:
    """Both are pstats files with the same name."""
    program = script(PROGRAM)
    run = ("run", "--cprofile", "--no-report", "-o", "x.qprof", program)
    assert queryprof(*run).returncode == 0
    assert queryprof(*run).returncode == 0
    content = Path("x.prof").read_bytes()
    refused = queryprof("export", "--format", "pstats", "x.qprof")
    assert refused.returncode == 2
    assert "x.prof: already exists, and is another kind of file" in refused.stderr
    assert Path("x.prof").read_bytes() == content
    assert pstats.Stats("x.prof").total_calls > 0  # type: ignore[attr-defined]


def test_run_reports_it_before_the_program_runs(
    queryprof: Run, script: Callable[[str], Path]
) -> None:
    program, option, name = script(f"{PROGRAM}open('ran', 'w')"), "--cprofile", "x.prof"
    Path(name).write_text("a person's own")
    refused = queryprof("run", option, "-o", "x.qprof", program)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert not Path("ran").exists()
    assert sorted(path.name for path in Path.cwd().iterdir()) == sorted([name, "program.py"])
    Path(name).unlink()
    assert queryprof("run", option, "-o", "x.qprof", program).returncode == 0


def test_only_workloads_are_removed(queryprof: Run, script: Callable[[str], Path]) -> None:
    program = script(PROGRAM)
    run = ("run", "--record-workload", "--no-report", "-o", "w", program)
    assert queryprof(*run).returncode == 0
    (workload,) = Path.cwd().glob("w-workload-*")
    Path("w-workload-plan.txt").write_text("a person's own")
    refused = queryprof(*run)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "w-workload-plan.txt: exists and is not a workload" in refused.stderr
    assert workload.exists()
    Path("w-workload-plan.txt").unlink()
    assert queryprof(*run).returncode == 0
    assert len(list(Path.cwd().glob("w-workload-*"))) == 1


def test_a_flag_takes_no_program_for_its_value(
    queryprof: Run, script: Callable[[str], Path]
) -> None:
    done = queryprof("run", "--no-report", "-o", "w", "--record-workload", script(PROGRAM))
    assert done.returncode == 0, done.stderr


def test_a_baseline_replaces_a_baseline_alone(queryprof: Run) -> None:
    from queryprof.errors import BaselineError
    from queryprof.testing.baseline_file import Baseline, write_baseline

    write_baseline("b.json", Baseline("3", "3.12", {}))
    write_baseline("b.json", Baseline("3", "3.12", {}))
    Path("package.json").write_text('{"name": "x"}')
    with pytest.raises(BaselineError, match="not a baseline"):
        write_baseline("package.json", Baseline("3", "3.12", {}))
