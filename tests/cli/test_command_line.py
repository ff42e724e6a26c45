"""The command line from outside: exit statuses, streams, signals and bad input."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import queryprof as qp
from conftest import QUERYPROF, Run, by_operation
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once

Script = Callable[..., Path]
WORK = "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('SELECT 1').fetchall()\n"


@pytest.mark.parametrize("status", [0, 1, 7, 255])
@pytest.mark.repeats
def test_exit_status_is_the_programs(queryprof: Run, script: Script, status: int) -> None:
    """Its streams are unchanged: the report goes only to stderr."""
    path = script(
        WORK + f"import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit({status})"
    )
    result = queryprof("run", path)
    assert result.returncode == status
    assert result.stdout == "out\n"
    assert result.stderr.startswith("err\nqueryprof")
    assert "1 execution of 1 statement" in result.stderr
    assert "trace: program.qprof" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
@pytest.mark.repeats
def test_death_by_a_signal_is_passed_on(queryprof: Run, script: Script, number: int) -> None:
    """The parent process sees the signal that killed the program."""
    path = script(WORK + f"import os\nos.kill(os.getpid(), {int(number)})\n")
    result = queryprof("run", "--no-report", path)
    assert result.returncode == -number


def test_signals_reach_the_program(script: Script) -> None:
    """The program handles SIGTERM to queryprof."""
    path = script(
        WORK + "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_:"
        " sys.exit(9))\nprint('ready', flush=True)\nwhile True:  # a signal that comes just"
        " before a long sleep waits for its end\n    time.sleep(0.05)\n"
    )
    child = subprocess.Popen(
        [QUERYPROF, "run", "--no-report", path], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    child.terminate()
    assert child.wait(timeout=30) == 9
    child.stdout.close()
    assert by_operation(read_profile("program.qprof"))["SELECT ?", "execute"] == 1


def test_an_interrupt_from_the_terminal(script: Script) -> None:
    """Ctrl-C goes to the program, which decides. queryprof still writes its report."""
    path = script(
        WORK
        + "import time\ntry:\n    print('ready', flush=True)\n    while True: time.sleep(0.05)\n"
        "except KeyboardInterrupt:\n    print('bye', flush=True)\n    raise SystemExit(4)\n"
    )
    main, other = pty.openpty()
    child = subprocess.Popen(
        [QUERYPROF, "run", path],
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(other)
    output = b""
    sent = False
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([main], [], [], 0.2)[0]:
            try:
                output += os.read(main, 65536)
            except OSError:
                break
        if b"ready" in output and not sent:
            sent = True
            os.write(main, b"\x03")
    os.close(main)
    assert child.wait(timeout=30) == 4, output
    assert b"bye" in output
    assert b"The vital few" in output
    assert b"\x1b[" in output, "a terminal gets colours"


def test_stdin_and_module_and_arguments(queryprof: Run, script: Script, tmp_path: Path) -> None:
    """-m MODULE and -c CODE run with this Python. Stdin and sys.argv are unchanged."""
    script("import sys\nprint(sys.argv[1:], sys.stdin.read())\n", "mod.py")
    result = queryprof("run", "--no-report", "-m", "mod", "-o", "--by", "x", input="hello")
    assert result.stdout == "['-o', '--by', 'x'] hello\n", result.stderr
    assert (tmp_path / "mod.qprof").exists()
    result = queryprof(
        "run", "--no-report", "-c", "import sys; print(sys.argv, sys.flags.isolated)"
    )
    assert result.stdout == "['-c'] 0\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "no-such-command"), "no-such-command: no such command"),
        (("run", "no_such.py"), "no_such.py: no such file"),
        (
            ("run", "--no-reprot", "x.py"),
            "--no-reprot: no such option of run; did you mean --no-report? see",
        ),
        (("run", "-m"), "run -m: needs a module after it"),
        (("run",), "Missing argument"),
        (("report",), "Missing argument"),
        (("report", "x.qprof", "--sort", "wrong"), "'wrong' is not one of"),
        (("report", "x.qprof", "--top", "0"), "0 is not in the range"),
        (("nonsense",), "No such command"),
        (("repport",), "Did you mean report?"),
        (("help", "report"), "For help: queryprof report --help"),
        (("app.py",), "To record a program: queryprof run app.py"),
        (("x.qprof",), "To read a trace: queryprof report x.qprof"),
        (("export", "x.qprof"), "speedscope (queryprof export --help)"),
        (("run", "-o", "/no/where/x.qprof", "true"), "cannot be written"),
        (("merge", "/no/where/x.qprof", "x.qprof"), "cannot be written"),
        (("merge", "out.qprof", "missing.qprof"), "missing.qprof: no such trace"),
    ],
)
@pytest.mark.repeats
def test_bad_input_is_a_one_line_error(
    queryprof: Run, arguments: tuple[str, ...], message: str
) -> None:
    """The exit status is 2, without a traceback, and no file is left."""
    with qp.profile("x.qprof"):
        pass
    result = queryprof(*arguments)
    assert result.returncode == 2
    assert (message in result.stderr, result.stderr.count("\n")) == (True, 1)
    assert "Traceback" not in result.stderr
    assert os.listdir() == ["x.qprof"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("pyproject.toml", "[tool.queryprof]\nrots = []", "no setting 'rots'"),
        ("pyproject.toml", "[tool.queryprof]\nroots = 'a'", "roots must be a list"),
        ("pyproject.toml", "[tool.queryprof]\ncall_path_frames = 9", "must be 1 to 8"),
        ("pyproject.toml", "[tool.queryprof\n", "not valid TOML"),
        ("pyproject.toml", "#" * 10_000_000, "is too large"),
        ("setup.cfg", "[queryprof]\nparameters = maybe", "Not a boolean: maybe"),
        ("setup.cfg", "[queryprof]\ncall_path_frames = x", "invalid literal"),
    ],
)
@pytest.mark.repeats
def test_bad_settings(queryprof: Run, script: Script, file: str, text: str, message: str) -> None:
    """The command refuses them before it runs anything. A running program continues unrecorded."""
    Path(file).write_text(text)
    path = script(WORK + "print('ran')\n")
    result = queryprof("run", path)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    program = script(
        "import queryprof\ntry:\n    queryprof.install()\n"
        "except queryprof.SettingsError as error:\n    print('told')\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout == "told\n"


@pytest.mark.parametrize("file", ["pyproject.toml", "setup.cfg"])
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "directory"])
@pytest.mark.repeats
def test_what_may_never_end_has_no_settings(
    queryprof: Run, script: Script, file: str, kind: str
) -> None:
    if kind == "directory":
        Path(file).mkdir()
    else:
        os.mkfifo("pipe" if kind.startswith("link") else file)
    if kind.startswith("link"):
        Path(file).symlink_to("pipe")
    result = queryprof("run", "--no-report", script(WORK + "print('ran')\n"))
    assert (result.returncode, result.stdout) == (0, "ran\n"), result.stderr


@pytest.mark.slow
def test_settings_are_followed(queryprof: Run, tmp_path: Path, script: Script) -> None:
    """Roots and call_path_frames may be in setup.cfg or in pyproject.toml."""
    library = tmp_path / "lib" / "site-packages"
    library.mkdir(parents=True)
    (library / "deep.py").write_text(
        "def a(c): return c.execute('SELECT 1').fetchall()\ndef b(c): return a(c)\n"
    )
    path = script(
        "import sys, sqlite3\nsys.path.insert(0, 'lib/site-packages')\nimport deep\n"
        "deep.b(sqlite3.connect(':memory:'))\n"
    )

    def functions() -> list[str]:
        assert queryprof("run", "--no-report", "-o", "x.qprof", path).returncode == 0
        (found,) = [
            a
            for a in read_profile("x.qprof").aggregates
            if (a.statement, a.operation) == ("SELECT ?", "execute")
        ]
        return [frame.function for frame in found.path]

    assert functions() == ["<module>"]
    Path("setup.cfg").write_text("[queryprof]\nroots = lib/site-packages\n")
    assert functions() == ["a", "b", "<module>"]
    Path("pyproject.toml").write_text(
        '[tool.queryprof]\nroots = ["lib/site-packages"]\ncall_path_frames = 2\n'
    )
    assert functions() == ["a", "b"]


@pytest.mark.slow
def test_formats(queryprof: Run) -> None:
    """Every format and view of the command works."""
    with qp.profile("x.qprof"):
        pass
    for form in ("table", "json", "markdown"):
        result = queryprof("report", "x.qprof", "--format", form)
        assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(queryprof("report", "x.qprof", "--format", "json").stdout)["calls"] == 0
    for dimension in ("statement", "site", "operation", "thread", "span"):
        assert queryprof("report", "x.qprof", "--by", dimension).returncode == 0


READERS = {
    "report": (["report", "x.qprof"], 0),
    "json": (["report", "x.qprof", "--format", "json"], 0),
    "markdown": (["report", "x.qprof", "--format", "markdown"], 0),
    "analyze": (["analyze", "x.qprof"], 0),
    "export": (["export", "--format", "speedscope", "x.qprof", "-o", "-"], 0),
    "nothing is worse": (["compare", "x.qprof", "x.qprof"], 0),
    "something is": (["compare", "x.qprof", "y.qprof"], 1),
}


@pytest.mark.parametrize(("command", "status"), READERS.values(), ids=READERS)
@pytest.mark.repeats
def test_a_reader_that_ends_first_changes_no_exit_status(command: list[str], status: int) -> None:
    """For example, `head` reads only a part of a comparison."""
    for number, path in ((1, "x.qprof"), (2, "y.qprof")):
        with qp.profile(path), closing(sqlite3.connect(":memory:")) as db:
            for _ in range(number):
                db.execute("SELECT 1").fetchall()
    with subprocess.Popen(
        [QUERYPROF, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert (process.wait(), process.stderr.read()) == (status, b"")


@pytest.mark.parametrize("options", [[], ["--cprofile"]], ids=["report", "files"])
@pytest.mark.repeats
def test_a_reader_of_the_report_that_ends_first_changes_no_exit_status(
    script: Script, options: list[str]
) -> None:
    """The status is the program's, and all files are written."""
    path = script(WORK + "\nimport sys; sys.exit(3)\n")
    command = [QUERYPROF, "run", "-o", "x.qprof", *options, path]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr
        process.stderr.close()
        assert process.wait() == 3
    written = {"x.qprof", *(["x.prof"] if options else [])}
    assert {one.name for one in Path().iterdir() if one.name.startswith("x.")} == written


def test_it_is_a_module_too(script: Script) -> None:
    command = [sys.executable, "-m", "queryprof", "run", "-o", "x.qprof", script(WORK)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "1 execution of 1 statement" in result.stderr
    wrong = subprocess.run(
        [*command[:3], "report", "none.qprof"], capture_output=True, text=True, check=False
    )
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert wrong.stderr.startswith("queryprof: ")
    usage = subprocess.run([*command[:3], "--help"], capture_output=True, text=True, check=True)
    assert usage.stdout.startswith("Usage: python -m queryprof ")


@pytest.mark.slow
def test_doctor(queryprof: Run) -> None:
    """The command prints one line per part."""
    result = queryprof("doctor")
    assert (result.returncode, result.stderr) == (0, "")
    found = dict(line.split(None, 1) for line in result.stdout.splitlines())
    assert found["sqlite3"].startswith("SQLite 3.")
    assert found["counters"].startswith("on: ")
    assert {"queryprof", "python", "core", "clock", "cost", "startup"} <= set(found)


def test_run_imports_what_it_needs_alone(script: Script) -> None:
    """Reports and models take longer to import than many programs run."""
    command = [sys.executable, "-X", "importtime", QUERYPROF, "run", "--no-report", script(WORK)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    imported = re.findall(r"\| +(queryprof\.\S+)", shown)
    assert "queryprof.cli.recording" in imported
    heavy = ("queryprof.model", "queryprof.analysis", "queryprof.report.export")
    assert [name for name in imported if name.startswith(heavy)] == []


@pytest.mark.parametrize("columns", ["0", "1", "19", "10001", "9" * 400])
@pytest.mark.repeats
def test_a_width_that_is_none_is_the_usual_one(queryprof: Run, columns: str) -> None:
    """Some terminals and services report 0."""
    queryprof(
        "run",
        "--no-report",
        "-o",
        "t.qprof",
        "-c",
        "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1')",
    )
    shown = {
        width: queryprof("report", "t.qprof", env={**os.environ, "COLUMNS": width}).stdout
        for width in (columns, "80")
    }
    assert shown[columns] == shown["80"] != ""
