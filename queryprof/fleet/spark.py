"""Query a fleet's tables in Apache Spark, for fleets that are too large for one machine.

    from queryprof.fleet import spark as fleet
    fleet.tables(spark, "s3://telemetry/shop", service="shop")
    fleet.ask(spark, "compare", before="1.4", after="1.5").show()

The session's time zone must be UTC, and the session must be able to read the store (s3:// is read
as s3a://). Results equal DuckDB's to 1e-9. The caller passes a Spark session, so importing this
module does not need PySpark.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from queryprof.errors import TraceError
from queryprof.fleet.copies import Wanted, is_plain
from queryprof.fleet.days import DAY, counted_files
from queryprof.fleet.footer import SCHEMA_KEY, Footer, footer_in
from queryprof.fleet.location import Directory, Location, location_of
from queryprof.fleet.parquet_files import ENDING, UNREADABLE
from queryprof.fleet.question_texts import DEFAULTS, PARAMETER, question_sql
from queryprof.fleet.schema import (
    BUCKETS,
    COUNTS,
    FLEET_TABLES,
    INSTANT,
    INTEGER,
    REAL,
    SCHEMA,
    SMALL,
    TEXT,
    may_be_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from queryprof.fleet.schema import FleetColumn, FleetTable

TYPES = {
    TEXT: "STRING",
    INTEGER: "BIGINT",
    SMALL: "INT",
    REAL: "DOUBLE",
    INSTANT: "TIMESTAMP",
    BUCKETS: "ARRAY<SMALLINT>",
    COUNTS: "ARRAY<BIGINT>",
}
DAYS = """CAST(window_start AS DATE) AS date,
    CAST(floor(unix_micros(window_start) / 86400e6) AS INT) AS day_number,
    unix_micros(window_start) / 1e6 AS start_s, unix_micros(window_end) / 1e6 AS end_s"""

POSSIBLE = """window_start BETWEEN '1970-01-01' AND '9999-01-01'
    AND window_end BETWEEN '1970-01-01' AND '9999-01-01'"""
DURATION = """SELECT service, version, host, window_start, statement_id, site, span, operation,
    each.buckets AS bucket, each.executions AS executions
FROM (SELECT *, explode(arrays_zip(buckets, executions)) AS each FROM aggregate)"""


def tables(
    spark: Any,
    url: str,
    *,
    service: str | None = None,
    version: str | None = None,
    environment: str | None = None,
    host: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> None:
    """Create the views that the questions read: aggregate, span, plan, finding, duration.

    Args:
        spark: a SparkSession.
        url: URL of a store, or path of a directory.
        service: limits the views to a service. The other arguments set further limits.

    Raises:
        TraceError: the session's time zone is not UTC, the store has no fleet data, or a file has
            another schema version.
        LocationError: the store cannot be read.
    """
    zone = spark.conf.get("spark.sql.session.timeZone")
    if zone != "UTC":
        raise TraceError(
            f"the session's time zone is {zone}: set spark.sql.session.timeZone to UTC"
        )
    chosen = {"version": version, "environment": environment, "host": host}
    wanted = Wanted(service, since, until)
    location = location_of(url)
    for table in FLEET_TABLES:
        files = _counted_files(location, table, wanted)
        if table.name == "aggregate" and not files:
            raise TraceError(f"{url}: no fleet data")
        frame = _frame(spark, url, table, files)
        for name, value in chosen.items():
            frame = frame if value is None else frame.filter(frame[name] == value)
        frame = frame if since is None else frame.filter(frame["window_end"] >= since)
        frame = frame if until is None else frame.filter(frame["window_start"] < until)
        frame.createOrReplaceTempView(table.name)
    spark.sql(DURATION).createOrReplaceTempView("duration")


def ask(spark: Any, name: str, **values: object) -> Any:
    """Run a question, and return its result as a DataFrame.

    Args:
        name: a query in queryprof/fleet/questions: ranking, compare, outliers, trend, plans, ...
        values: the query's parameters, for example before and after for compare.

    Raises:
        KeyError: a parameter is missing.
    """
    text = question_sql(name)
    known = {**DEFAULTS, **values}
    return spark.sql(
        PARAMETER.sub(r":\1", text), args={one: known[one] for one in PARAMETER.findall(text)}
    )


def _counted_files(location: Location, table: FleetTable, wanted: Wanted) -> dict[str, list[str]]:
    """Return the names of the files to read, by service (see queryprof.fleet.days)."""
    folders: dict[str, list[str]] = {}
    for entry in location.entries(table.name):
        if entry.name.endswith(ENDING) and is_plain(entry.name) and wanted.has(entry.name):
            folder, _, name = entry.name.rpartition("/")
            folders.setdefault(folder, []).append(name)
    found: dict[str, list[str]] = {}
    services: dict[str, str] = {}
    for folder, names in sorted(folders.items()):
        sources: dict[str, frozenset[str] | None] = dict.fromkeys(names)
        for name in names:
            if name.startswith(DAY) and len(names) > 1:
                sources[name] = _footer(location, f"{folder}/{name}").sources
        above = folder.rpartition("/")[0]
        if above not in services:
            services[above] = _footer(location, f"{folder}/{names[0]}").service
        some = found.setdefault(services[above], [])
        some += [f"{folder}/{name}" for name in counted_files(sources)]
    return found


def _footer(location: Location, name: str) -> Footer:
    """Return a file's footer. Raises TraceError."""
    try:
        facts = pq.read_schema(pa.BufferReader(location.get(name))).metadata or {}
    except UNREADABLE as error:
        raise TraceError(f"{name}: not a complete Parquet file: {error}") from error
    version = facts.get(SCHEMA_KEY, b"").decode("ascii", "replace")
    if version != str(SCHEMA):
        raise TraceError(f"{name}: has schema version {version or 'none'}")
    return footer_in(facts)


def _frame(spark: Any, url: str, table: FleetTable, files: Mapping[str, list[str]]) -> Any:
    """Return a DataFrame with the rows of the files."""
    from pyspark.sql.functions import lit

    types = ", ".join(f"{one.name} {TYPES[one.kind]}" for one in table.columns)
    base = _spark_url(url)
    shown = ", ".join(map(_column_sql, table.columns))
    frame = None
    for service, names in files.items():
        paths = [f"{base}/{name}" for name in names]
        rows = spark.read.schema(types).option("recursiveFileLookup", "true").parquet(*paths)
        some = rows.withColumn("service", lit(service))
        frame = some if frame is None else frame.unionByName(some)
    if frame is None:
        frame = spark.createDataFrame([], f"{types}, service STRING")
    view = f"queryprof_{table.name}_files"
    frame.createOrReplaceTempView(view)
    return spark.sql(f"SELECT {shown}, service, {DAYS} FROM {view} WHERE {POSSIBLE}")


def _spark_url(url: str) -> str:
    """Return a location's URL in the form that Spark needs."""
    parts = urlsplit(url)
    if isinstance(location_of(url), Directory):
        return f"file://{os.path.abspath(url)}"
    scheme = {"s3": "s3a", "gcs": "gs"}.get(parts.scheme, parts.scheme)
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _column_sql(column: FleetColumn) -> str:
    """Return the SQL of a file's column as questions need it, with 0 for missing counts."""
    if column.kind == INSTANT or may_be_unknown(column):
        return column.name
    nothing = "array()" if column.kind in (BUCKETS, COUNTS) else "0"
    return f"coalesce({column.name}, {nothing}) AS {column.name}"
