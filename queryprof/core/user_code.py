"""Decide which code belongs to the program, by the directory of its file.

The longest matching prefix counts. Code without a matching prefix is a library. Directories named
site-packages or dist-packages inside a directory of the program also hold libraries.
"""

from __future__ import annotations

import os
import sys

ROOTS_VARIABLE = "QUERYPROF_ROOTS"
"""Variable with further directories of the program's code, separated as in PATH."""

USER, LIBRARY, STANDARD, SELF, IGNORED = range(5)
"""The classes of code, as the C core numbers them."""

WORKER_STARTS = ("exec(eval(sys.stdin.readline()))", "from multiprocessing")
"""Parts of the `python -c` code with which execnet (pytest-xdist) and multiprocessing start
workers.
"""

IGNORED_CODE = (
    "coverage/",  # coverage's own data
    "IPython/core/history.py",
    "nbformat/sign.py",  # trusted notebooks
)
"""Packages whose own use of SQLite does not belong to the program."""


def code_prefixes(roots: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return (prefix, class) pairs for the running interpreter."""
    directories = [(directory, STANDARD) for directory in _standard_directories()]
    directories += [(one, USER) for one in (working_directory(), *script_directory()) if one]
    directories += [(root, USER) for root in (*roots, *_notebook_cell_directories())]
    ignored: list[tuple[str, int]] = []
    for parent in sys.path:
        if parent.endswith(("site-packages", "dist-packages")):
            directories += [(parent, LIBRARY)]
            ignored += [(os.path.join(parent, name), IGNORED) for name in IGNORED_CODE]
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    directories.append((package, SELF))
    directories += [(directory, SELF) for directory in _mapped_directories(package)]
    # Roots set by the user come last, so that they override even the directories of libraries.
    directories += [(root, USER) for root in roots]
    classes = dict(ignored)
    classes |= {_code_prefix(directory): kind for directory, kind in directories}
    return list(classes.items())


def _notebook_cell_directories() -> list[str]:
    """Return the directory that a Jupyter kernel uses in the file names of cells. It does not
    exist.
    """
    if not any("ipykernel" in one for one in (*sys.modules, *getattr(sys, "orig_argv", ()))):
        return []
    from tempfile import gettempdir

    return [os.path.join(gettempdir(), f"ipykernel_{os.getpid()}")]


def working_directory() -> str:
    """Return the working directory; "" if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def is_typed_in() -> bool:
    """Return whether a main program without a file belongs to the user. The alternative is a worker
    that a library started with `python -c`.
    """
    arguments: list[str] = getattr(sys, "orig_argv", [])
    code = arguments[arguments.index("-c") + 1 :][:1] if "-c" in arguments else []
    return not code or not any(start in code[0] for start in WORKER_STARTS)


def _code_prefix(directory: str) -> str:
    return directory if directory.endswith(os.sep) else directory + os.sep


def _standard_directories() -> set[str]:
    return {os.path.dirname(os.path.abspath(os.__file__))}


def script_directory() -> list[str]:
    """Return the directory of the running script, unless it is installed code (a command, or
    `python -m pytest`).
    """
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    if not script.endswith(".py") or not os.path.isfile(script):
        return []
    directory = os.path.dirname(os.path.abspath(script))
    installed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    if any(_code_prefix(directory).startswith(_code_prefix(path)) for path in installed):
        return []
    return [directory]


def _mapped_directories(package: str) -> list[str]:
    """Return hooks/ and cli/ of a checkout, which an editable install has next to the package."""
    beside = os.path.dirname(package)
    mapped = [os.path.join(beside, name) for name in ("hooks", "cli")]
    return [path for path in mapped if os.path.isfile(os.path.join(beside, "setup.cfg"))]
