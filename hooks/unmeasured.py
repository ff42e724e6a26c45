"""The database modules that a program has imported and that are not measured, by their names."""

from __future__ import annotations

import sys
from types import ModuleType

from queryprof.hooks.imports import package_of
from queryprof.hooks.libraries import DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

BY_NAME = frozenset((*DRIVERS, "asyncmy", "asyncpg"))
"""Those that may not follow PEP 249."""

PEP_249_GLOBALS = ("apilevel", "connect", "paramstyle")
"""What a module must have that follows it (https://peps.python.org/pep-0249/#globals), and others have
not.
"""


def unmeasured_modules(measured: Collection[str]) -> list[str]:
    """The names, sorted; a module inside another one of them is left out.

    Args:
        measured: packages that are measured, or on top of what is.
    """
    found: list[str] = []
    for name, module in sorted(sys.modules.copy().items(), key=lambda item: str(item[0])):
        if not isinstance(name, str) or not issubclass(type(module), ModuleType):
            continue
        # Not by attributes: those of a module that is to be loaded later would load it.
        own: dict[str, object] = object.__getattribute__(module, "__dict__")
        if name not in BY_NAME:
            if not all(needed in own for needed in PEP_249_GLOBALS):
                continue
            home = getattr(own["connect"], "__module__", None)
            if package_of(str(home or name)) in measured:
                continue  # another module's names
        if package_of(name) not in measured and not any(
            name.startswith(f"{one}.") for one in found
        ):
            found.append(name)
    return found
