"""pentamorfico/hoodini#88 (pull request). A step that should take a second hangs for ten minutes: a
temporary table of DuckDB is filled by executemany (28 s for 200,000 rows).

Cause: DuckDB runs executemany row by row.

Line: con.executemany in missing_contigs().

Fix: give all rows at once (con.register of a data frame; here INSERT ... SELECT unnest(?),
unnest(?)). The join is fast.
"""

import duckdb
from _main import main


def setup():
    con = duckdb.connect("ncbi.duckdb")
    con.execute(
        "CREATE TABLE contigs AS SELECT 'GCF_' || i AS assembly, 'NZ_' || i AS contig, (i * 7919) % 100000 AS length FROM range(40000) AS t(i)"
    )
    con.execute(
        "CREATE TABLE taxonomy AS SELECT 'GCF_' || i AS assembly, 'genus ' || (i % 300) AS genus FROM range(40000) AS t(i)"
    )
    con.close()


def wanted():
    return [(f"GCF_{i * 5}", i % 3) for i in range(2500)]


def fill_by_row(con, rows):
    con.executemany("INSERT INTO allowed VALUES (?, ?)", rows)


def fill_at_once(con, rows):
    con.execute(
        "INSERT INTO allowed SELECT unnest(?::VARCHAR[]), unnest(?::INTEGER[])",
        [[r[0] for r in rows], [r[1] for r in rows]],
    )


def missing_contigs(con, fill):
    con.execute("CREATE TEMP TABLE allowed (assembly VARCHAR, source INTEGER)")
    fill(con, wanted())
    return con.execute(
        "SELECT source, count(*), sum(length) FROM contigs JOIN allowed USING (assembly) GROUP BY source ORDER BY source"
    ).fetchall()


def run(fill):
    con = duckdb.connect("ncbi.duckdb", read_only=True)
    con.execute("SET threads = 1")
    genera = con.execute("SELECT count(DISTINCT genus) FROM taxonomy").fetchone()[0]
    return genera, missing_contigs(con, fill)


main(setup, lambda: run(fill_by_row), lambda: run(fill_at_once))
