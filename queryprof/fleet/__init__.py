"""From traces to a fleet: flat tables in Parquet files, a file for each host and window, which any
engine reads (docs/fleet.md).
"""
