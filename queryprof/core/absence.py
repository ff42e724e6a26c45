"""Where nothing can be recorded, for want of the core: what is said, and that it is said once."""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.recorder import complain

_said = False


def absence() -> str:
    """Why nothing can be recorded here; "": it can."""
    reason: str = vars(_core).get("ABSENCE", "")
    return reason


def is_absent() -> bool:
    """Whether nothing can be recorded here; says so the first time, on stderr."""
    global _said
    reason = absence()
    if reason and not _said:
        _said = True
        complain(f"nothing is recorded here: {reason}")
    return bool(reason)
