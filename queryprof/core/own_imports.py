"""Import modules of the standard library in the program's process, even if the program has files
with the same names.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib import BuiltinImporter
from _frozen_importlib_external import PathFinder
from _thread import get_ident

from queryprof.core.held_signals import came_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

LIBRARY = os.path.dirname(getattr(os, "__file__", "") or "")
"""The standard library's directory; "" in a frozen program."""

DIRECTORIES = (LIBRARY, os.path.join(LIBRARY, "lib-dynload")) if LIBRARY else ()
OWN_PACKAGE = __name__.partition(".")[0]
INSTALLED = ("site-packages", "dist-packages")
"""Directories of installed packages. An installed module with the name of a standard module behaves
like the standard module.
"""


class own_imports:
    """A context in which this thread imports standard modules from the standard directory, even if
    other directories come first in sys.path. Otherwise, a json.py of the program could run. The
    program's import finders are not called for queryprof's modules either.

    Later imports by the program still find the program's modules.

    Attributes:
        program: the first directory in sys.path when the program begins; "" if unknown.
    """

    program = ""

    def __enter__(self) -> None:
        self._thread = get_ident()
        self._found: list[str] = []
        self._hidden: dict[str, ModuleType] = {}
        for name in sys.stdlib_module_names.intersection(sys.modules):
            if DIRECTORIES and _is_in_the_program(_spec_file(name)):
                self._hidden |= _remove_modules(name)
        sys.meta_path.insert(0, self)

    def __exit__(self, *exc_info: object) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in self._found:
            if name in self._hidden or _program_has_another(name, self.program):
                _remove_modules(name)
        sys.modules.update(self._hidden)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find only modules of the standard library and of queryprof
        (importlib.abc.MetaPathFinder).
        """
        package = name.partition(".")[0]
        if get_ident() != self._thread or (
            package != OWN_PACKAGE and package not in sys.stdlib_module_names
        ):
            return None
        if path is not None:
            return _find_spec(name, path)
        spec = BuiltinImporter.find_spec(name) or _find_spec(name, DIRECTORIES)
        if spec is not None:
            self._found.append(name)
        return spec


def _is_in_the_program(origin: str) -> bool:
    """Return whether a module's file belongs neither to the standard library nor to an installed
    package.
    """
    if not os.path.isabs(origin) or origin.startswith(LIBRARY + os.sep):
        return False
    return not any(f"{os.sep}{name}{os.sep}" in origin for name in INSTALLED)


def _spec_file(name: str) -> str:
    """Return the file in a module's spec; "" if missing. The program may have replaced it."""
    try:
        origin = getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None)
    except Exception as error:
        if came_from_handler(error):
            raise
        origin = None
    return origin if type(origin) is str else ""


def _remove_modules(name: str) -> dict[str, ModuleType]:
    """Remove a module and its submodules from sys.modules, and return them."""
    names = [one for one in sys.modules.copy() if f"{one}.".startswith(f"{name}.")]
    return {one: sys.modules.pop(one) for one in names}


def _program_has_another(name: str, program: str) -> bool:
    """Return whether the program would find a different module than this context found."""
    its = (_find_spec(name, (program,)) if program else None) or _find_spec(name, None)
    return its is not None and its.origin != _spec_file(name)


def _find_spec(name: str, directories: Sequence[str] | None) -> ModuleSpec | None:
    """Return the spec of a module in these directories, or in sys.path."""
    spec: ModuleSpec | None = PathFinder.find_spec(name, directories)
    return spec
