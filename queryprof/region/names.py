"""The names of what the core numbers: kinds of code and of locks, and the sources of a loop's
delays.
"""

from __future__ import annotations

LOCK_KINDS = ("write", "read", "wait")
"""The kinds of locks, and waits for them (core/sums/file_rows.h)."""

CODE_KINDS = ("user", "library", "standard", "standard", "library")
"""The classes of code (core/stacks/code_owners.h)."""

LAG_SOURCES = ("timer", "beat")
"""What measures a loop's delay: its timers, and callbacks at intervals."""
