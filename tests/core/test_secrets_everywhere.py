"""No value of the program is in any output: files, pages, exports, memory."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from core.test_secrets import ATTEMPTS, BARE, LITERALS, SETUP, STATEMENTS, secret_of

from conftest import QUERYPROF, Run

pytestmark = pytest.mark.once


def test_arguments_of_the_command_line(tmp_path: Path) -> None:
    """The program and the names of options are kept. Values are kept only on request."""
    program = tmp_path / "p.py"
    program.write_text("import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1')")
    command = [QUERYPROF, "run", "--no-report", "-o", "t.qprof"]
    arguments = [
        "--password=Hush1",
        "--token",
        "Hush2",
        "-pHush3",
        "Hush4",
        "--verbose",
        "--key Hush5",
        "--password:Hush6",
        "--Authorization: Bearer Hush7",
        "-----BEGIN KEY-----\nHush8",
    ]
    for more, wanted in (([], False), (["--parameters"], True)):
        subprocess.run([*command, *more, str(program), *arguments], cwd=tmp_path, check=True)
        trace = (tmp_path / "t.qprof").read_bytes()
        assert (b"Hush" in trace) is wanted
        assert b"--password" in trace
        assert b"p.py" in trace


ALL_TEXTS = [
    *(
        s.replace("{}", literal.replace("{{", "{").replace("}}", "}"))
        for s in STATEMENTS
        for literal in LITERALS
    ),
    *BARE,
]


CARELESS = f"""
import json, os, shutil, sys
{ATTEMPTS}
for connection in connections(sys.argv[1]):
    with open(sys.argv[2]) as texts:
        for text in json.load(texts):
            attempt(connection, text)
regions = [f"/dev/shm/{{name}}" for name in os.listdir("/dev/shm") if f"-{{os.getpid()}}-" in name]
shutil.copy(max(regions, key=os.path.getmtime), "../written/region")  # others have left theirs
"""


SAYS = (
    "report --top 1000",
    "report --format json",
    "report --format markdown",
    "report --show tree",
    "report --show slowest",
    "report --show slowest-requests",
    "analyze",
    "analyze --format json",
    "html -o page.html",
    "export --format pstats -o a.prof",
    "export --format speedscope -o a.json",
    "merge merged.qprof",
    "compare c.qprof",
)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs shared memory")
@pytest.mark.slow
def test_no_secret_is_in_anything_that_is_written(tmp_path: Path, queryprof: Run) -> None:
    """This includes the memory that other processes of this user can read while the program runs. A
    checkpoint has the same content, and so has the file of a killed process.
    """
    secret = secret_of(3)
    texts = [text.replace("{}", secret) for text in ALL_TEXTS]
    given = tmp_path / "given"
    given.mkdir()
    (given / "texts.json").write_text(json.dumps(texts))
    (given / "careless.py").write_text(CARELESS)
    written = tmp_path / "written"
    written.mkdir()
    run = [QUERYPROF, "run", "--no-report", "-o", "../written/c.qprof", "careless.py"]
    subprocess.run([*run, SETUP, "texts.json"], cwd=given, check=True)
    message = {}
    for command in SAYS:
        words = [*command.split(), "c.qprof"]
        result = queryprof(*words, cwd=written)
        assert result.returncode == 0
        message[command] = (result.stdout + result.stderr).encode()
    files = {path.name: path.read_bytes() for path in written.rglob("*") if path.is_file()}
    assert b"SELECT" in files["region"]
    assert {"region", "c.qprof", "page.html", "merged.qprof", "a.prof"} <= files.keys()
    for name, content in {**message, **files}.items():
        at = content.lower().find(secret.lower().encode())
        assert at < 0, (name, content[max(0, at - 200) : at + 100])
