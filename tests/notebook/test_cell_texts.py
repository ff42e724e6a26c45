"""The text of a cell."""

from __future__ import annotations

import pytest

from queryprof.hooks import notebook_cells

pytestmark = pytest.mark.once


def test_lines_have_the_same_numbers_as_typed_and_as_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython removes empty lines at the start of the code, not of what was typed."""
    code = "get_ipython().run_line_magic('time', '1')\nx = 1\n"
    cells = {"file": (5, code, "\n  \n%time 1\nx = 1\n")}
    monkeypatch.setattr(notebook_cells, "_latest_cells", lambda: cells)
    assert notebook_cells.cell_texts() == {"In [5]": (code, "%time 1\nx = 1\n")}
