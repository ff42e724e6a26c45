"""Find imported database modules that are not measured."""

from __future__ import annotations

import sys

from queryprof.hooks.imports import package_of
from queryprof.hooks.libraries import DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

SUBINTERPRETERS = frozenset(
    ("concurrent.interpreters", "concurrent.futures.interpreter")
    if sys.version_info >= (3, 14)
    else ("_interpreters", "_xxsubinterpreters")
)
"""Modules that create subinterpreters, whose calls are not measured. From 3.14 on,
concurrent.futures imports _interpreters.
"""

BY_NAME = frozenset((*DRIVERS, "asyncmy"))
"""Database modules that are recognized by name, because they may not follow PEP 249."""

PEP_249_GLOBALS = ("apilevel", "connect", "paramstyle")
"""Globals that identify a module of PEP 249 (https://peps.python.org/pep-0249/#globals)."""

ModuleType = type(sys)  # not imported from `types`, because a program need not have imported that
PLAIN = (type(package_of), type(len), type)
"""Types whose `__module__` can be read without running code of the program."""


def unmeasured_modules(measured: Collection[str]) -> list[str]:
    """Return the sorted names of unmeasured modules, without modules inside another unmeasured
    module.

    Args:
        measured: packages that are measured, or that use measured packages.
    """
    found: list[str] = []
    modules = {name: one for name, one in sys.modules.copy().items() if type(name) is str}
    for name, module in sorted(modules.items(), key=lambda item: item[0]):
        if not issubclass(type(module), ModuleType):
            continue
        if name in SUBINTERPRETERS:
            found.append(name)
            continue
        # Attribute access could run the program's code, which may load a module or raise.
        own: dict[str, object] = vars(ModuleType)["__dict__"].__get__(module) or {}
        if name not in BY_NAME:
            if not all(needed in own for needed in PEP_249_GLOBALS):
                continue
            connect = own["connect"]
            home = connect.__module__ if type(connect) in PLAIN else None
            if package_of(str(home or name)) in measured:
                continue  # the names belong to another module
        if package_of(name) not in measured and not any(
            name.startswith(f"{one}.") for one in found
        ):
            found.append(name)
    return found
