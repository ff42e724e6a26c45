"""Work that asks a database, and what was recorded of it."""

from __future__ import annotations

import sqlite3

from queryprof.model import Profile, Span


def ask(number: int = 1) -> int:
    connection = sqlite3.connect(":memory:")
    (found,) = connection.execute("SELECT ?", (number,)).fetchone()
    connection.close()
    return int(found)


def span_of(profile: Profile, name: str) -> Span:
    (found,) = [span for span in profile.spans if span.name == name]
    return found
