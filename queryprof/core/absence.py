"""Report once that nothing can be recorded without the core."""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.recorder import complain

_said = False


def absence_reason() -> str:
    """Return why nothing can be recorded here, or ""."""
    reason: str = vars(_core).get("ABSENCE", "")
    return reason


def is_core_absent() -> bool:
    """Return whether nothing can be recorded here. The first time, print the reason on stderr."""
    global _said
    reason = absence_reason()
    if reason and not _said:
        _said = True
        complain(f"this installation cannot record: {reason}")
    return bool(reason)
