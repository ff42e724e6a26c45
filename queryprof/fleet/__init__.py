"""Export traces to a fleet's flat tables in Parquet files.

There is one file per table, host and window, which any query engine can read (docs/fleet.md).

The tables have no transaction log, unlike Delta Lake, because the cost of each write would grow
with the number of files. Measured with deltalake 1.6.6 and one table in a local directory: an
append takes 14 ms of CPU in a table of 10 files, 109 ms with 1,000 files, and 200 ms with 4,100
files, whose log has 123 MB. Writing a Parquet file alone takes 7 ms. A fleet of 1,000 hosts writes
24,000 files per table and day.
"""
