"""What a PostgreSQL server's planner and statistics say of recorded statements."""
