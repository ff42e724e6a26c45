"""The cells of a notebook, or of IPython in a terminal: their names, and their source.

IPython compiles each cell under a file name of its own, and knows which cell that is.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_CELLS = 500
"""The latest ones have a name."""


def cell_names() -> Mapping[str, str]:
    """By the file name that a cell is compiled under: "In [5]", where 5 is how often a cell had
    been run by then. Empty: this program runs no cells.
    """
    return {file: f"In [{number}]" for file, (number, _, _) in _cells().items()}


def cell_texts() -> Mapping[str, tuple[str, str]]:
    """The text of each cell by its name, as Python code (IPython makes calls of its magics), and as
    it was typed: line by line the same.
    """
    return {
        f"In [{number}]": (code, _without_empty_lines(typed))
        for number, code, typed in _cells().values()
    }


def _without_empty_lines(text: str) -> str:
    """Without those before the first line, which IPython leaves out, too."""
    lines = text.splitlines(keepends=True)
    while lines and not lines[0].strip():
        del lines[0]
    return "".join(lines)


def _cells() -> dict[str, tuple[int, str, str]]:
    """The latest cells by the file names of their code: number, code, and text as typed.

    What runs inside a cell (the body of %%capture) has the next cell's number in IPython: it is no
    cell, which shows in that its code is none that was typed.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    history = getattr(shell, "history_manager", None)
    codes = getattr(history, "input_hist_parsed", ())
    typed = getattr(history, "input_hist_raw", ())
    found: dict[str, tuple[int, str, str]] = {}
    if named is None:
        return found
    import linecache  # which no other program needs

    for file in tuple(linecache.cache):
        kind, name = named(file) or ("", "")
        text = name.removeprefix("In[").removesuffix("]")
        number = int(text) if kind == "Cell" and text.isdecimal() else 0
        code = "".join(linecache.getlines(file)) if number else ""
        if 0 < number < min(len(codes), len(typed)) and str(codes[number]).strip() == code.strip():
            found[file] = number, code, str(typed[number])
    return dict(list(found.items())[-MOST_CELLS:])
