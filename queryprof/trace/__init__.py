"""The trace file: its tables, and code that writes and reads them."""
