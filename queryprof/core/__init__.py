"""The measuring core in C, and the Python modules that configure and start it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

SUBINTERPRETER = "queryprof.subinterpreter"
"""The `name` of the ImportError that the core in C raises in a subinterpreter."""


def __getattr__(name: str) -> ModuleType:
    """Import the core at its first use, and return it. In a subinterpreter, return the core's
    substitute, because all interpreters of a process share the tables of the core in C.
    """
    if name != "_core":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import queryprof.core._core as core
    except ImportError as error:
        if error.name != SUBINTERPRETER:
            raise
    else:
        return core
    import os
    import sys
    from importlib.util import module_from_spec, spec_from_file_location

    path = os.path.join(os.path.dirname(__file__), "_core.py")
    spec = spec_from_file_location("queryprof.core._core", path)
    assert spec
    assert spec.loader
    found = module_from_spec(spec)
    found.IS_SUBINTERPRETER = True  # type: ignore[attr-defined]
    spec.loader.exec_module(found)
    # Another thread may have imported the module meanwhile.
    globals()[name] = found = sys.modules.setdefault(found.__name__, found)
    return found
