"""The cells of a notebook, or of IPython in a terminal: their names, and their source.

IPython compiles each cell under a file name of its own, and knows which cell that is.
"""

from __future__ import annotations

import linecache
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_CELLS = 500
"""The latest ones have a name."""


def cell_names() -> Mapping[str, str]:
    """By the file name that a cell is compiled under: "In [5]", where 5 is how often a cell had
    been run by then. Empty: this program runs no cells.
    """
    shell = _shell()
    return {file: f"In [{number}]" for file, number in _numbers(shell)} if shell else {}


def cell_texts() -> Mapping[str, tuple[str, str]]:
    """The text of each cell by its name, as Python code (IPython makes calls of its magics), and as
    it was typed: line by line the same.
    """
    shell = _shell()
    typed = getattr(getattr(shell, "history_manager", None), "input_hist_raw", ())
    texts = {}
    for file, number in _numbers(shell) if shell else ():
        code = "".join(linecache.getlines(file))
        text = str(typed[number]) if 0 < number < len(typed) else code
        texts[f"In [{number}]"] = code, _without_empty_lines(text)
    return texts


def _without_empty_lines(text: str) -> str:
    """Without those before the first line, which IPython leaves out, too."""
    lines = text.splitlines(keepends=True)
    while lines and not lines[0].strip():
        del lines[0]
    return "".join(lines)


def _shell() -> Any:
    """IPython's shell; None: there is none, or none whose cells can be named."""
    ipython = sys.modules.get("IPython")
    shell = getattr(ipython, "get_ipython", lambda: None)()
    return shell if hasattr(getattr(shell, "compile", None), "format_code_name") else None


def _numbers(shell: Any) -> list[tuple[str, int]]:
    """The file names of the latest cells, each with its number."""
    found = []
    for file in tuple(linecache.cache):
        kind, name = shell.compile.format_code_name(file) or ("", "")
        number = name.removeprefix("In[").removesuffix("]")
        if kind == "Cell" and number.isdecimal():
            found.append((file, int(number)))
    return found[-MOST_CELLS:]
