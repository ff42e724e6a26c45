"""Prove fixes: build candidate indexes and rewrites on a copy of the database, and measure them."""
