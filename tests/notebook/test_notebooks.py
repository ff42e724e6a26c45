"""In notebooks, cells have names and lines, results are cards, and a repeated cell shows the
changes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from queryprof.collect.reader import read_profile

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="kernels are on the first Python"),
]
notebooks = pytest.importorskip("notebook.notebooks")
pytest.importorskip("sql")
pytest.importorskip("pandas")
printed = notebooks.printed

MAKE_SHOP = """\
%load_ext queryprof
import asyncio, sqlite3
con = sqlite3.connect("shop.db")
con.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INT, amount INT)")
con.executemany("INSERT INTO sale (customer, amount) VALUES (?, ?)", ((i % 500, i) for i in range(50_000)))
con.commit()
"""
FUNCTION = """\
def of_customer(number):
    sql = "SELECT sum(amount) FROM sale WHERE customer = ?"
    return con.execute(sql, (number,)).fetchone()[0]
"""
LOOP = """\
%%queryprof -o before
total = 0
for number in range(20):
    total += of_customer(number)
total
"""
CELLS = {
    "make": MAKE_SHOP,
    "function": FUNCTION,
    "loop": LOOP,
    "index": "_ = con.execute('CREATE INDEX sale_customer ON sale (customer)')",
    "again": LOOP,
    "line": "value = %queryprof of_customer(7)\nvalue",
    "bare": "queried = %queryprof\nlast = %queryprof\nprint(repr(queried), queried is last)",
    "against": "%queryprof --against before of_customer(7)",
    "in a function": "def inner(number):\n    %queryprof of_customer(number)\n\ninner(8)",
    "await": "%%queryprof\nawait asyncio.sleep(0)\ncon.execute('SELECT 1').fetchone()[0]",
    "error": "%%queryprof\ncon.execute('SELECT 2').fetchone()\nraise ValueError('mine')",
    "syntax": "%%queryprof\nfor in range(3):",
    "nothing": "%%queryprof\n1 + 1",
    "time": "%%time\n%%queryprof\nof_customer(3)",
    "capture": "%%capture seen\n%%queryprof\nof_customer(3)",
    "captured": "print(len(seen.outputs), 'queryprof' in seen.outputs[-1].data['text/html'])",
    "block": "with queryprof.profile() as p:\n    of_customer(4)\np",
    "option": "%%queryprof --nothing\n1",
    "value": "%%queryprof -o\n1",
    "words": "%%queryprof of_customer(3)\n1",
    "variable": "%%queryprof --against con\n1",
    "magic inside": "%%queryprof\n%%time\nof_customer(5)",
    "trace": "%%queryprof --trace cell.qprof\nof_customer(6)",
    "both": "%%queryprof\nof_customer(1)\n%queryprof of_customer(2)\nof_customer(3)",
    "page": "print(before.html('page.html')); print(before.html('page.html'))",
    "no page": "open('mine.html', 'w').write('mine'); before.html('mine.html')",
    "frame": "before.dataframe()[['executions', 'place', 'statement']].values.tolist()",
    "findings": "print([(one.category, one.code) for one in before.findings])",
    "help": "%queryprof?",
    "gone": "%unload_ext queryprof\n%queryprof",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("notebook")
    cells = dict(CELLS)
    cells["block"] = "import queryprof\n" + cells["block"]
    found = notebooks.run_cells(directory, cells.values())
    return dict(zip(cells, found, strict=True)) | {"directory": directory}


def text_of(html):
    return "".join(ET.fromstring(html).itertext())


def test_a_cell_shows_its_value_and_then_its_cards(outputs):
    value = sum(i for i in range(50_000) if i % 500 < 20)
    assert notebooks.shown(outputs["loop"], "text/plain")[0] == str(value)
    (html,) = notebooks.shown(outputs["loop"])
    text = text_of(html)
    assert "20 executions of 1 statement" in text
    assert (
        "of_customer() In [2], line 3 <- <module> In [3], line 4, in the loop at In [3], line 3"
        in text
    )
    assert "CREATE INDEX sale_customer_amount ON sale (customer, amount);" in text
    assert "3  return con.execute(sql, (number,)).fetchone()[0]" in text
    assert "SCAN sale  ! reads 50,000 rows to return 1" in text


def test_cards_have_no_script_link_or_picture(outputs):
    (html,) = notebooks.shown(outputs["loop"])
    tags = {element.tag for element in ET.fromstring(html).iter()}
    assert tags <= {"div", "style", "p", "b", "span", "pre", "h4"}
    assert not [word for word in ("url(", "http", "@import") if word in html]


def test_the_text_form_has_no_colours(outputs):
    text = notebooks.shown(outputs["loop"], "text/plain")[1]
    assert "What to do" in text
    assert "\x1b" not in text


def test_a_cell_that_runs_again_shows_what_changed(outputs):
    (html,) = notebooks.shown(outputs["again"])
    assert re.search(
        r"Since its last run: ran [^,]+ -> [^,]+, time in the database [^,]+ -> [^,]+,"
        r" executions 20 -> 20, rows 20 -> 20, VM steps 3,[0-9]{3},[0-9]{3} -> [0-9]{2},[0-9]{3}",
        text_of(html),
    )
    (html,) = notebooks.shown(outputs["against"])
    assert re.search(r"Since before: ran .* executions 20 -> 1", text_of(html))
    (html,) = notebooks.shown(outputs["loop"])
    assert "Since" not in text_of(html)


def test_a_line_has_its_value(outputs):
    value = str(sum(i for i in range(50_000) if i % 500 == 7))
    assert notebooks.shown(outputs["line"], "text/plain")[-1] == value
    (html,) = notebooks.shown(outputs["line"])
    assert "of_customer() In [2], line 3 <- <module> In [6], line 1" in text_of(html)
    assert "in the loop" not in text_of(html)
    assert printed(outputs["bare"]).startswith("<queryprof.Recording: 1 execution of 1 statement")
    assert printed(outputs["bare"]).endswith("True\n")
    (html,) = notebooks.shown(outputs["in a function"])
    assert "of_customer() In [2], line 3 <- <module> In [9], line 2" in text_of(html)


def test_a_cell_awaits_as_ever(outputs):
    assert notebooks.shown(outputs["await"], "text/plain")[0] == "1"
    (html,) = notebooks.shown(outputs["await"])
    assert "<module> In [10], line 3" in text_of(html)


def test_an_error_is_the_programs_and_what_ran_is_shown(outputs):
    assert notebooks.raised(outputs["error"]) == ["ValueError: mine"]
    (html,) = notebooks.shown(outputs["error"])
    assert "<module> In [11], line 2" in text_of(html)
    (error,) = notebooks.raised(outputs["syntax"])
    assert error.startswith("SyntaxError")
    assert not notebooks.shown(outputs["syntax"])


def test_a_cell_without_queries_says_so(outputs):
    (html,) = notebooks.shown(outputs["nothing"])
    assert "no database calls" in text_of(html)
    assert "No findings" not in text_of(html)


def test_other_cell_magics_go_with_it(outputs):
    assert "Wall time" in printed(outputs["time"])
    assert len(notebooks.shown(outputs["time"])) == 1
    assert printed(outputs["captured"]) == "2 True\n"
    assert "Wall time" in printed(outputs["magic inside"])
    (html,) = notebooks.shown(outputs["magic inside"])
    assert "1 execution of 1 statement" in text_of(html)


def test_profile_in_a_cell_shows_the_same(outputs):
    (html,) = notebooks.shown(outputs["block"])
    assert "of_customer() In [2], line 3 <- <module> In [17], line 3" in text_of(html)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("option", "unknown option --nothing; the options are -o, --against, --trace"),
        ("value", "-o needs a value: %queryprof? shows the options"),
        (
            "words",
            "'of_customer(3)': the statements are on the lines below %%queryprof; -o NAME keeps the recording in a variable",
        ),
        ("variable", "--against con: not a finished recording"),
    ],
)
def test_a_wrong_option_is_one_line(outputs, cell, message):
    assert notebooks.shown(outputs[cell]) == []
    assert printed(outputs[cell], "stderr") == f"UsageError: queryprof: {message}\n"


def test_a_trace_is_kept_with_the_cells_names(outputs, queryprof):
    text = queryprof("report", outputs["directory"] / "cell.qprof").stdout
    assert "of_customer() In [2], line 3  <- <module> In [23], line 2" in text


def test_pages_replace_pages_alone(outputs):
    assert printed(outputs["page"]) == 2 * f"{outputs['directory']}/page.html\n"
    assert "In [2]" in (outputs["directory"] / "page.html").read_text()
    (error,) = notebooks.raised(outputs["no page"])
    assert error.endswith("; delete it, or choose another name")
    assert (outputs["directory"] / "mine.html").read_text() == "mine"


def test_figures_are_a_data_frame(outputs):
    assert notebooks.shown(outputs["frame"], "text/plain") == [
        "[[20, 'In [2], line 3', 'SELECT sum(amount) FROM sale WHERE customer = ?']]"
    ]


def test_unload(outputs):
    assert "not found" in printed(outputs["gone"], "stderr")


SECRET = "<script>alert(1)</script>"
LIBRARIES = {
    "make": """\
%load_ext queryprof
%load_ext sql
import duckdb, pandas, sqlalchemy, sqlite3
con = sqlite3.connect("shop.db")
con.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INT)")
con.executemany("INSERT INTO sale (customer) VALUES (?)", ((i,) for i in range(100)))
con.commit()
engine = sqlalchemy.create_engine("sqlite:///shop.db")
duck = duckdb.connect()
""",
    "pandas": "%%queryprof\nframe = pandas.read_sql('SELECT * FROM sale', con)",
    "engine": "%%queryprof\nframe = pandas.read_sql(sqlalchemy.text('SELECT * FROM sale'), engine)",
    "sqlalchemy": "%%queryprof\nwith engine.connect() as c:\n    rows = c.execute(sqlalchemy.text('SELECT id FROM sale')).all()",
    "to": "%sql sqlite:///shop.db",
    "sql": "%%queryprof\n%%sql\nSELECT count(*) FROM sale",
    "sql line": "%%queryprof\nresult = %sql SELECT count(*) FROM sale",
    "duckdb": "%%queryprof\nduck.execute('SELECT 42').fetchall()",
    "hostile": f"%%queryprof\ncon.execute('SELECT 1 AS \"{SECRET}\"').fetchall()",
    "markup in code": "%%queryprof\ncon.execute('SELECT id FROM sale').fetchone()  # </pre><img src=x>",
    "install": "import queryprof\nqueryprof.install('kernel.qprof')",
    "slow": "con.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT sum(i) FROM n').fetchone()",
    "own": """\
import asyncio
async def work():
    for _ in range(3):
        con.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT max(i) FROM n').fetchone()
        await asyncio.sleep(0)
await asyncio.gather(work(), work())
""",
    "history": "%history -n 1-3",
    "nested": "%%queryprof\ncon.execute('SELECT max(id) FROM sale').fetchone()",
    "end": "queryprof.uninstall()",
}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    directory = tmp_path_factory.mktemp("libraries")
    found = notebooks.run_cells(directory, LIBRARIES.values())
    assert not [error for cell in found for error in notebooks.raised(cell)]
    return dict(zip(LIBRARIES, found, strict=True)) | {"directory": directory}


@pytest.mark.parametrize(
    ("cell", "place", "statement"),
    [
        pytest.param(
            *("pandas", "<module> In [2], line 2", "SELECT * FROM sale"), marks=pytest.mark.slow
        ),
        ("engine", "<module> In [3], line 2", "SELECT * FROM sale"),
        ("sqlalchemy", "<module> In [4], line 3", "SELECT id FROM sale"),
        ("sql", "<module> In [6], line 2", "SELECT count(*) FROM sale"),
        ("sql line", "<module> In [7], line 2", "SELECT count(*) FROM sale"),
        ("duckdb", "<module> In [8], line 2", "SELECT ?"),
        ("nested", "<module> In [15], line 2", "SELECT max(id) FROM sale"),
    ],
)
@pytest.mark.repeats
def test_the_line_is_the_cells_through_libraries_too(libraries, cell, place, statement):
    text = text_of(notebooks.shown(libraries[cell])[-1])
    first = text[text.index("The vital few") :]
    assert place in first
    assert statement in first


def test_source_is_shown_as_it_was_typed(libraries):
    assert "2  result = %sql SELECT count(*) FROM sale" in text_of(
        notebooks.shown(libraries["sql line"])[-1]
    )


def test_names_and_source_are_text(libraries):
    for cell, mark in (("hostile", SECRET), ("markup in code", "</pre><img src=x>")):
        (html,) = notebooks.shown(libraries[cell])
        tags = {element.tag for element in ET.fromstring(html).iter()}
        assert tags <= {"div", "style", "p", "b", "span", "pre", "h4"}
        assert mark in text_of(html)


def test_the_kernels_loop_is_not_the_programs(libraries):
    profile = read_profile(str(libraries["directory"] / "kernel.qprof"))
    functions = [stall.function.function for loop in profile.loops for stall in loop.stalls]
    assert set(functions) == {"work"}
    statements = {one.statement for one in profile.aggregates}
    assert not [one for one in statements if "history" in one or "sessions" in one]
    assert {
        frame.file for one in profile.aggregates for frame in one.path if frame.kind == "user"
    } == {"In [12]", "In [13]", "In [15]"}


def test_a_cell_that_takes_long_blocks_no_loop(libraries, queryprof):
    found = queryprof("analyze", libraries["directory"] / "kernel.qprof", "--format", "json").stdout
    files = {
        one["site"]["frame"]["file"]
        for one in json.loads(found)["findings"]
        if one["category"] == "blocked_loop"
    }
    assert files == {"In [13]"}


IN_SHELL = """
import sqlite3, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.colors = "NoColor"
for text, name in [
    ("import sqlite3; c = sqlite3.connect(':memory:')", None),
    ("%load_ext queryprof", None),
    ("%load_ext queryprof", None),
    *[(text, "abc") for text in ("%%queryprof\\nfor _ in range(120): c.execute('SELECT 1')", "%%queryprof\\nc.execute('SELECT 2')")],
    ("%%queryprof\\nc.execute('SELECT 3')", "other"),
    ("%reload_ext queryprof", None),
    ("%%queryprof -o kept\\nc.execute('SELECT 4')", None),
    ("print(len(shown))", None),
]:
    shell.user_ns.setdefault("shown", [])
    shell.run_cell(text, store_history=True, cell_id=name)
print(shell.check_complete("%%queryprof\\n"), shell.check_complete("%%queryprof\\n1\\n\\n"))
"""


def test_an_edited_cell_is_compared_with_its_last_run(script):
    program = script(IN_SHELL)
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=60
    )
    compared = [line for line in done.stdout.splitlines() if line.startswith("Since")]
    assert len(compared) == 1, done.stdout
    words = " ".join(done.stdout[done.stdout.index("Since") :].split())
    assert re.search(r"executions 120 -> 1, rows 0 -> 0, VM steps", words)
    assert "In [5], line 2" in done.stdout
    assert done.stdout.splitlines()[-1] == "('incomplete', '') ('complete', '')"
    assert done.stderr == ""


@pytest.mark.slow
def test_a_line_in_a_cell_counts_for_both(outputs):
    inner, outer = notebooks.shown(outputs["both"])
    assert "1 execution of 1 statement" in text_of(inner)
    assert "3 executions of 1 statement" in text_of(outer)


def test_the_cells_of_the_documentation(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "notebooks.md").read_text()
    cells = re.findall(r"^```ipython\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    found = notebooks.run_cells(tmp_path, cells)
    assert [notebooks.raised(outputs) for outputs in found] == [[]] * len(cells)
    first, again = text_of(notebooks.shown(found[2])[0]), text_of(notebooks.shown(found[4])[0])
    assert "In [3], line 3" in first
    assert "CREATE INDEX sale_customer_amount" in first
    assert "executions 20 -> 20" in again
    assert "CREATE INDEX" not in again
