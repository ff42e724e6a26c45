"""Plans and statistics from a PostgreSQL server for recorded statements."""
