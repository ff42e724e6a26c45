"""Plans statements with SQLite's planner on an empty copy of a schema."""
