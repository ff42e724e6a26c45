"""Which code is the program's own: by the directory that its file is in.

The longest matching prefix counts. Code that no prefix matches is a library. Directories named
site-packages or dist-packages inside a directory of the program hold libraries too.
"""

from __future__ import annotations

import os
import sys

ROOTS_VARIABLE = "QUERYPROF_ROOTS"
"""Further directories whose code is the program's own, with the separator of PATH between them."""

USER, LIBRARY, STANDARD, SELF, IGNORED = range(5)
"""The classes of code, as the C core numbers them."""

WORKER_STARTS = ("exec(eval(sys.stdin.readline()))", "from multiprocessing")
"""What the code of `python -c` contains if execnet (pytest-xdist) or multiprocessing wrote it."""

IGNORED_CODE = (
    "coverage/",  # its data
    "IPython/core/history.py",
    "nbformat/sign.py",  # which notebooks are trusted
)
"""Code in packages whose own use of SQLite is not the program's."""


def code_prefixes(roots: tuple[str, ...]) -> list[tuple[str, int]]:
    """(beginning of a path, class) pairs for the running interpreter."""
    directories = [(directory, STANDARD) for directory in _standard_directories()]
    directories += [(one, USER) for one in (working_directory(), *script_directory()) if one]
    directories += [(root, USER) for root in (*roots, *_kernels_cells())]
    ignored: list[tuple[str, int]] = []
    for parent in sys.path:
        if parent.endswith(("site-packages", "dist-packages")):
            directories += [(parent, LIBRARY)]
            ignored += [(os.path.join(parent, name), IGNORED) for name in IGNORED_CODE]
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    directories.append((package, SELF))
    directories += [(directory, SELF) for directory in _mapped_directories(package)]
    # A chosen root counts even where it is installed, so it comes after.
    directories += [(root, USER) for root in roots]
    classes = dict(ignored)
    classes |= {_prefix(directory): kind for directory, kind in directories}
    return list(classes.items())


def _kernels_cells() -> list[str]:
    """The directory of a kernel's cells, which is never made: the beginning of their names."""
    if not any("ipykernel" in one for one in (*sys.modules, *getattr(sys, "orig_argv", ()))):
        return []
    from tempfile import gettempdir

    return [os.path.join(gettempdir(), f"ipykernel_{os.getpid()}")]


def working_directory() -> str:
    """The working directory; empty: it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def is_typed_in() -> bool:
    """Whether a main program without a file is the user's: not if a library starts workers
    by it.
    """
    arguments: list[str] = getattr(sys, "orig_argv", [])
    code = arguments[arguments.index("-c") + 1 :][:1] if "-c" in arguments else []
    return not code or not any(start in code[0] for start in WORKER_STARTS)


def _prefix(directory: str) -> str:
    return directory if directory.endswith(os.sep) else directory + os.sep


def _standard_directories() -> set[str]:
    return {os.path.dirname(os.path.abspath(os.__file__))}


def script_directory() -> list[str]:
    """The directory of the script that runs, unless it is where installed code is (a command, or
    `python -m pytest`).
    """
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    if not script.endswith(".py") or not os.path.isfile(script):
        return []
    directory = os.path.dirname(os.path.abspath(script))
    installed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    if any(_prefix(directory).startswith(_prefix(path)) for path in installed):
        return []
    return [directory]


def _mapped_directories(package: str) -> list[str]:
    """hooks/ and cli/ of a checkout, which are beside the package in an editable install."""
    beside = os.path.dirname(package)
    mapped = [os.path.join(beside, name) for name in ("hooks", "cli")]
    return [path for path in mapped if os.path.isfile(os.path.join(beside, "setup.cfg"))]
