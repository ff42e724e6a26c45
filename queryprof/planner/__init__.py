"""Plan statements with SQLite's planner on an empty copy of the program's schema."""
