"""Regions: the memory into which processes record, read while they run and afterwards."""
