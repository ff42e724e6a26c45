"""Report once that queryprof cannot record without its core."""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.recorder import complain

_said = False


def absence_reason() -> str:
    """Return why this installation cannot record; "" if it can."""
    reason: str = vars(_core).get("ABSENCE", "")
    return reason


def is_core_absent() -> bool:
    """Return whether the core is missing. If so, the first call prints the reason on stderr."""
    global _said
    reason = absence_reason()
    if reason and not _said:
        _said = True
        complain(f"this installation cannot record: {reason}")
    return bool(reason)
