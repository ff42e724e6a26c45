"""Regions: memory in which a process records. Regions are read during and after the recording."""
