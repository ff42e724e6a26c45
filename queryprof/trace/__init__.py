"""Keep: the trace file, one SQLite file a process, merged later."""
