"""Export traces to a fleet's flat tables in Parquet files.

There is one file for each host and window, which any engine can read (docs/fleet.md).
"""
