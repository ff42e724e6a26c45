"""Attaching to database drivers."""
