"""Analysis: pure functions from a Profile to findings and rankings."""
