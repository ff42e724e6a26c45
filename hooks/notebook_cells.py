"""The cells of a notebook, or of IPython in a terminal: names and source.

IPython compiles each cell under a separate file name, and can map the file name to the cell.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CELLS = 500
"""Maximum number of cells with a name. Only the latest cells have one."""


def cell_names() -> Mapping[str, str]:
    """Return the names of cells by the file names of their code; empty if the program runs no
    cells.

    In the name "In [5]", 5 is the cell's execution count.
    """
    return {file: f"In [{number}]" for file, (number, _, _) in _latest_cells().items()}


def cell_texts() -> Mapping[str, tuple[str, str]]:
    """Return two texts of each cell by its name: the Python code, and the text as typed.

    IPython replaces magics by calls. Both texts have the same lines.
    """
    return {
        f"In [{number}]": (code, _without_empty_lines(typed))
        for number, code, typed in _latest_cells().values()
    }


def _without_empty_lines(text: str) -> str:
    """Remove empty lines at the start, as IPython does."""
    lines = text.splitlines(keepends=True)
    while lines and not lines[0].strip():
        del lines[0]
    return "".join(lines)


def _latest_cells() -> dict[str, tuple[int, str, str]]:
    """Return the latest cells by the file names of their code: number, code, and text as typed.

    Code that runs inside a cell (the body of %%capture) has the next cell's number in IPython. It
    is skipped, because its code was not typed as a cell.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    history = getattr(shell, "history_manager", None)
    codes = getattr(history, "input_hist_parsed", ())
    typed = getattr(history, "input_hist_raw", ())
    found: dict[str, tuple[int, str, str]] = {}
    if named is None:
        return found
    import linecache  # imported late, because no other program needs it

    for file in tuple(linecache.cache):
        kind, name = named(file) or ("", "")
        text = name.removeprefix("In[").removesuffix("]")
        number = int(text) if kind == "Cell" and text.isdecimal() else 0
        code = "".join(linecache.getlines(file)) if number else ""
        if 0 < number < min(len(codes), len(typed)) and str(codes[number]).strip() == code.strip():
            found[file] = number, code, str(typed[number])
    return dict(list(found.items())[-MAX_CELLS:])
