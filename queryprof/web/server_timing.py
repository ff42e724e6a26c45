"""The Server-Timing header (https://www.w3.org/TR/server-timing/), which browsers show."""

from __future__ import annotations


def server_timing_header(queries: int, database_ns: int) -> str:
    """Return the header's value.

    >>> server_timing_header(17, 12_300_000)
    'db;dur=12.3;desc="17 queries"'
    """
    noun = "query" if queries == 1 else "queries"
    return f'db;dur={database_ns / 1e6:.1f};desc="{queries} {noun}"'
