"""Record: what processes leave in memory, read while they run and afterwards."""
