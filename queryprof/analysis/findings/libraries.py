"""The library that a program asks its database through, and how a fix is written with it."""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.model import Frame

INSTALLED = ("/site-packages/", "/dist-packages/")
"""What is before the package in the file of a library's frame."""


def package_of(stack: Iterable[Frame]) -> str:
    """The package of the frames nearest to the driver; "" where the program calls it itself."""
    for frame in stack:
        if frame.kind == "user":
            return ""
        for folder in INSTALLED:
            _, found, rest = frame.file.rpartition(folder)
            if found:
                return rest.partition("/")[0].removesuffix(".py")
    return ""


BEGIN_IMMEDIATE = {
    "django": 'In settings.py: DATABASES["default"]["OPTIONS"] = {"transaction_mode": "IMMEDIATE"}'
    " (Django 5.1 and newer).",
    "sqlalchemy": "Let an event begin transactions that write with BEGIN IMMEDIATE: see"
    ' "Serializable isolation / Savepoints / Transactional DDL" in SQLAlchemy\'s notes on SQLite.',
    "peewee": 'Begin it so: with db.atomic("IMMEDIATE"):',
}
NO_LIBRARY = "Begin it with BEGIN IMMEDIATE: it then waits for its turn before it reads."
"""How a transaction that writes later begins, so that it waits for its turn."""
