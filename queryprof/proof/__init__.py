"""Proof of a fix: candidates are built on a copy of the database, and measured there."""
