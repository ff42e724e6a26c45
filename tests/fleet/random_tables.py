"""Files of a fleet's tables with random rows, made from the declarations."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from random import Random
from typing import Any

from queryprof.fleet.schema import (
    BUCKETS,
    COUNTS,
    FLEET_TABLES,
    INSTANT,
    INTEGER,
    REAL,
    SMALL,
    FleetColumn,
)
from queryprof.trace.declaration import KEY

FILES, ROWS = 3, 6


def write_random_tables(folder: str, seed: int) -> dict[str, list[str]]:
    """Write the files, and return their paths by table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from queryprof.fleet.footer import Footer
    from queryprof.fleet.parquet_files import arrow_schema

    chosen = Random(seed)
    found: dict[str, list[str]] = {}
    for table in FLEET_TABLES:
        for number in range(FILES):
            rows = []
            for _ in range(ROWS):
                row = {one.name: value_of(one, chosen) for one in table.columns}
                buckets = sorted(chosen.sample(range(100), chosen.randrange(4)))
                for one in table.columns:
                    if one.kind == BUCKETS:
                        row[one.name] = buckets
                    if one.kind == COUNTS:
                        row[one.name] = [chosen.randrange(1, 9) for _ in buckets]
                rows.append(row)
            schema = arrow_schema(table).with_metadata(Footer("shop", ()).facts())
            path = os.path.join(folder, f"{table.name}-{number}.parquet")
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
            found.setdefault(table.name, []).append(path)
    return found


def value_of(column: FleetColumn, chosen: Random) -> Any:
    """Return a value. Some values are unknown, including keys."""
    if column.role == KEY:
        return chosen.choice(["a", "b", None] if column.name in NULLABLE else ["a", "b"])
    if chosen.random() < 0.3:
        return None
    if column.kind == INSTANT:
        return datetime.fromtimestamp(chosen.randrange(10**6), UTC)
    if column.kind in (INTEGER, SMALL):
        return chosen.randrange(10)
    if column.kind == REAL:
        return float(chosen.randrange(10))
    return chosen.choice(["x", "y"])


NULLABLE = ("version", "environment", "host")
