"""Names for numbers of the core: kinds of code and locks, and sources of a loop's delays."""

from __future__ import annotations

LOCK_KINDS = ("write", "read", "wait")
"""The kinds of locks and lock waits, numbered as in core/memory/file_rows.h."""

CODE_KINDS = ("user", "library", "standard", "standard", "library")
"""The owners of code, numbered as in core/stacks/code_owners.h."""

LAG_SOURCES = ("timer", "beat")
"""Sources of a loop's delay: the program's timers, and callbacks at regular intervals."""
