"""Recordings in notebooks: nested cells, tasks, errors, and early ends of recordings."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree as ET

import pytest

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="kernels are on the first Python"),
]
notebooks = pytest.importorskip("notebook.notebooks")
printed = notebooks.printed

CELLS = {
    "begin": """\
%load_ext queryprof
import asyncio, sqlite3, queryprof
con = sqlite3.connect(":memory:")
con.execute("CREATE TABLE t (a)")
def q(number):
    for _ in range(number):
        con.execute("SELECT a FROM t").fetchall()
""",
    "task": "async def work():\n    con.execute('SELECT 4').fetchone()",
    "gather": "%%queryprof\nawait asyncio.gather(work(), work())",
    "group": "%%queryprof\nasync with asyncio.TaskGroup() as group:\n    group.create_task(work())",
    "captured function": "%%capture seen\nimport math\n\ndef inner():\n    return con.execute('SELECT 5').fetchone()",
    "other": "# of another cell\nWRONG = 1\nWRONG = 2\nWRONG = 3",
    "call": "%%queryprof\ninner()",
    "no directory": "%%queryprof --trace missing/x.qprof\nran = True",
    "not run": "print('ran' in globals(), queryprof.is_installed())",
    "nested": "%%queryprof -o outer\nq(1)\nget_ipython().run_cell('q(2)')\nq(3)",
    "nested twice": "%%queryprof -o outer\nq(1)\nget_ipython().run_cell('%%queryprof -o inner\\nq(2)')\nq(3)",
    "capture below": "%%queryprof -o outer\n%%capture seen\nprint('x')\nq(2)",
    "count": "print(len(seen.outputs), seen.stdout)",
    "ended": "%%queryprof\nq(2)\nqueryprof.uninstall()\nq(2)",
    "install": "%%queryprof\nqueryprof.install('inside.qprof')\nq(1)",
    "on": "print(queryprof.is_installed()); queryprof.uninstall()",
    "loop": "for number in (1, 2):\n    %queryprof q(number)",
    "loop again": "for number in (1, 2):\n    %queryprof q(number)",
    "error": """\
%%queryprof
class Slow(Exception):
    def __str__(self):
        q(50)
        return "slow"
q(1)
raise Slow
""",
    "patched": "print('showtraceback' in get_ipython().__dict__)",
    "their hook": "get_ipython().showtraceback = lambda *args, **kwargs: print('their hook')",
    "under a hook": "%%queryprof\nq(1)",
    "hook again": "print('showtraceback' in get_ipython().__dict__)\nraise ValueError",
    "no hook": "del get_ipython().showtraceback",
    "lost trace": "%%queryprof --trace d/x.qprof\nimport shutil\nq(1)\nshutil.rmtree('d')\nraise ValueError",
    "directory": "import os\nos.mkdir('d')",
    "lost of a line": "%queryprof --trace d/x.qprof shutil.rmtree('d'), {}['mine']",
    "braces": "x = 3\nvalue = %queryprof '$x {x}'\nprint(value)",
    "silent": "%queryprof q(1);",
    "indented": "%%queryprof\n    q(1)\n    q(2)",
    "empty line": "%%queryprof\n\n%%time\nq(2)",
    "many": "%%queryprof -o many\nfor i in range(2000):\n    con.execute(f'SELECT a AS c{i} FROM t').fetchall()",
    "length": "print(len(str(many)) < 20_000, len(many._repr_html_()) < 50_000)",
    "dollars": "%%queryprof\ncon.execute('SELECT a AS \"$x$\" FROM t').fetchall()",
    "not ended": "r = queryprof.profile()\nr.__enter__()\nprint(repr(r), str(r))\nr",
    "its end": "r.__exit__(None, None, None)\nprint(r.has_ended)",
    "unloaded": "%%queryprof -o last\nq(1)\n%unload_ext queryprof\nq(2)",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("states")
    (directory / "d").mkdir()
    found = notebooks.run_cells(directory, CELLS.values())
    return dict(zip(CELLS, found, strict=True)) | {"directory": directory}


def text_of(html):
    return "".join(ET.fromstring(html).itertext())


def cards(outputs):
    return [text_of(html) for html in notebooks.shown(outputs)]


@pytest.mark.parametrize("cell", ["gather", "group"])
@pytest.mark.slow
def test_a_task_has_its_own_line(outputs, cell):
    (text,) = cards(outputs[cell])
    assert "work() In [2], line 2" in text


def test_code_that_runs_inside_a_cell_is_not_the_next_cell(outputs):
    (text,) = cards(outputs["call"])
    assert "inner()" in text
    assert "In [6]" not in text
    assert "WRONG" not in text


def test_a_trace_that_cannot_be_written_is_refused_before_the_cell_runs(outputs):
    assert "no directory" in printed(outputs["no directory"], "stderr")
    assert printed(outputs["not run"]) == "False False\n"


def test_a_cell_inside_a_cell_ends_no_recording(outputs):
    (text,) = cards(outputs["nested"])
    assert "6 executions of 1 statement" in text
    inner, outer = cards(outputs["nested twice"])
    assert "2 executions of 1 statement" in inner
    assert "6 executions of 1 statement" in outer


def test_what_the_program_captures_stays_its_own(outputs):
    (text,) = cards(outputs["capture below"])
    assert "2 executions of 1 statement" in text
    assert printed(outputs["count"]) == "0 x\n\n"


def test_a_recording_that_was_ended_is_not_complete(outputs):
    (text,) = cards(outputs["ended"])
    assert "2 executions" in text
    assert "the recording was ended inside the block" in text
    assert "Complete" not in text


def test_install_in_a_block_goes_on_after_it(outputs):
    assert "1 execution" in cards(outputs["install"])[0]
    assert printed(outputs["on"]) == "True\n"
    assert (outputs["directory"] / "inside.qprof").is_file()


def test_lines_are_compared_with_the_last_run_of_their_cell(outputs):
    assert not [text for text in cards(outputs["loop"]) if "Since" in text]
    # Both cells have the same text; the line ran twice there, and its last run was of 2.
    first, second = cards(outputs["loop again"])
    assert "executions 2 -> 1" in first
    assert "Since" not in second


def test_what_shows_the_error_is_not_recorded(outputs):
    assert notebooks.raised(outputs["error"]) == ["Slow: slow"]
    (text,) = cards(outputs["error"])
    assert "1 execution of 1 statement" in text
    assert printed(outputs["patched"]) == "False\n"


def test_another_hook_of_errors_stays(outputs):
    assert printed(outputs["hook again"]) == "True\ntheir hook\n"
    assert notebooks.raised(outputs["no hook"]) == []


def test_a_lost_trace_is_reported_and_the_programs_error_counts(outputs):
    assert notebooks.raised(outputs["lost trace"]) == ["ValueError: "]
    assert "d/x.qprof" in printed(outputs["lost trace"], "stderr")
    assert notebooks.raised(outputs["lost of a line"]) == ["KeyError: 'mine'"]
    assert "lost" in printed(outputs["lost of a line"], "stderr")


def test_a_statement_is_executed_as_it_stands(outputs):
    assert printed(outputs["braces"]).endswith("$x {x}\n")
    assert notebooks.shown(outputs["silent"], "text/plain")[1:] == []


def test_a_body_runs_as_it_would_without(outputs):
    (text,) = cards(outputs["indented"])
    assert "3 executions" in text
    assert "Wall time" in printed(outputs["empty line"])


def test_a_large_recording_has_a_short_text(outputs):
    assert printed(outputs["length"]) == "True True\n"


def test_names_are_no_mathematics(outputs):
    (html,) = notebooks.shown(outputs["dollars"])
    classes = ET.fromstring(html).get("class").split()
    assert {"tex2jax_ignore", "mathjax_ignore"} < set(classes)


def test_a_block_that_goes_on_says_so(outputs):
    assert (
        printed(outputs["not ended"]) == " ".join(["<queryprof.Recording: not ended>"] * 2) + "\n"
    )
    assert "The recorded block has not ended yet." in cards(outputs["not ended"])[0]
    assert printed(outputs["its end"]) == "True\n"


def test_unloading_ends_and_shows(outputs):
    (text,) = cards(outputs["unloaded"])
    assert re.search(r"1 execution of", text)
