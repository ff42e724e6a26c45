"""How to begin a transaction so that it waits for other writers before it reads."""

from __future__ import annotations

BEGIN_IMMEDIATE = {
    "django": (
        'In settings.py: DATABASES["default"]["OPTIONS"] = {"transaction_mode": "IMMEDIATE"}'
        " (Django 5.1 and newer)."
    ),
    "sqlalchemy": (
        'Let an event begin writing transactions with BEGIN IMMEDIATE: see "Serializable'
        " isolation / Savepoints / Transactional DDL\" in SQLAlchemy's notes on SQLite."
    ),
    "peewee": (
        'Begin the transaction with `with db.atomic("IMMEDIATE"):`, which waits for the lock before'
        " reading."
    ),
}
NO_LIBRARY = (
    "Begin the transaction with BEGIN IMMEDIATE, which waits for the lock before reading. A SELECT"
    " with unfetched rows also keeps a transaction open: call `fetchall()` before you write."
)
