"""The SQL that adds a row to what is there: sums add up, the larger of two maxima stays."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def upsert(table: str, key: Sequence[str], sums: Sequence[str], maxima: Sequence[str] = ()) -> str:
    """An INSERT whose parameters are the columns of the key, the sums and the maxima."""
    columns = (*key, *sums, *maxima)
    updates = [f"{name} = {name} + excluded.{name}" for name in sums]
    updates += [f"{name} = max({name}, excluded.{name})" for name in maxima]
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(updates)}"
    )
