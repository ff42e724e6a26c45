"""What queryprof imports in the program's process: of the standard library that, and not files of
the program that have the same name.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib import BuiltinImporter
from _frozen_importlib_external import PathFinder
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

LIBRARY = os.path.dirname(getattr(os, "__file__", "") or "")
"""The standard library's directory; "": a program that is frozen has none."""

DIRECTORIES = (LIBRARY, os.path.join(LIBRARY, "lib-dynload")) if LIBRARY else ()
OURS = __name__.partition(".")[0]
INSTALLED = ("site-packages", "dist-packages")
"""Directories of packages: a module there that has a standard name does what the standard
one does."""


class own_imports:
    """A context in which imports of this thread find the standard library's modules in its
    directory, whatever is before that in sys.path: to import a program's json.py would run it. Nor
    do finders of the program see queryprof's own modules.

    The program still gets its own when it imports that name later.

    Attributes:
        program: the directory that will be first in sys.path when the program begins; "": not
            known.
    """

    program = ""

    def __enter__(self) -> None:
        self._thread = get_ident()
        self._found: list[str] = []
        self._hidden: dict[str, ModuleType] = {}
        for name in sys.stdlib_module_names.intersection(sys.modules):
            if DIRECTORIES and _is_in_the_program(_origin(name)):
                self._hidden |= _taken_out(name)
        sys.meta_path.insert(0, self)

    def __exit__(self, *exc_info: object) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in self._found:
            if name in self._hidden or _is_the_programs(name, self.program):
                _taken_out(name)
        sys.modules.update(self._hidden)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds modules of the standard library and of queryprof alone
        (importlib.abc.MetaPathFinder).
        """
        package = name.partition(".")[0]
        if get_ident() != self._thread or (
            package != OURS and package not in sys.stdlib_module_names
        ):
            return None
        if path is not None:
            return _find(name, path)
        spec = BuiltinImporter.find_spec(name) or _find(name, DIRECTORIES)
        if spec is not None:
            self._found.append(name)
        return spec


def _is_in_the_program(origin: str) -> bool:
    """Whether a module's file is neither the standard library's nor an installed package's."""
    if not os.path.isabs(origin) or origin.startswith(LIBRARY + os.sep):
        return False
    return not any(f"{os.sep}{name}{os.sep}" in origin for name in INSTALLED)


def _origin(name: str) -> str:
    """The file of a module's spec; "": there is none. A program may have put any object there."""
    try:
        origin = getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None)
    except Exception:
        origin = None
    return origin if type(origin) is str else ""


def _taken_out(name: str) -> dict[str, ModuleType]:
    """A module and those in it, which are out of sys.modules now."""
    names = [one for one in sys.modules.copy() if f"{one}.".startswith(f"{name}.")]
    return {one: sys.modules.pop(one) for one in names}


def _is_the_programs(name: str, program: str) -> bool:
    """Whether a module that was found is not the one that the program would find."""
    its = (_find(name, (program,)) if program else None) or _find(name, None)
    return its is not None and its.origin != _origin(name)


def _find(name: str, directories: Sequence[str] | None) -> ModuleSpec | None:
    """What is in these directories, or in sys.path, with a module's name."""
    spec: ModuleSpec | None = PathFinder.find_spec(name, directories)
    return spec
