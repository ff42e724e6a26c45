"""Keep: the trace file, its tables, and how they are written and read."""
