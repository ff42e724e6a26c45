"""The places where a program gives functions to its driver are found in its source."""

from __future__ import annotations

import pytest

from queryprof.program.source_callbacks import driver_callbacks
from queryprof.program.sources import Sources


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("connection.create_collation('people', compare)", "create_collation()"),
        ("sqlite3.register_converter('money', Decimal)", "register_converter()"),
        ("connection.set_progress_handler(check, 100)", "set_progress_handler()"),
        ("sqlite3.connect(path, detect_types=sqlite3.PARSE_DECLTYPES)", "detect_types"),
        ("connection.row_factory = as_dict", "row_factory"),
        ("connection.text_factory = lambda text: text.decode()", "text_factory"),
        ("connection.row_factory = sqlite3.Row", ""),
        ("connection.row_factory = None", ""),
        ("connection.text_factory = bytes", ""),
        ("create_function()", ""),
        ("connection.execute('SELECT 1')", ""),
        ("this is not Python", ""),
    ],
)
def test_callbacks(line: str, name: str) -> None:
    assert driver_callbacks(f"import sqlite3\n{line}\n") == (((2, name),) if name else ())


def test_places_have_file_and_line() -> None:
    text = "connection.set_profile(print)\n"
    found = Sources({}, {"/tmp/b.py": (text, text), "/tmp/a.py": ("\n" + text, text)})
    assert found.driver_callbacks() == ("set_profile() a.py:2", "set_profile() b.py:1")
