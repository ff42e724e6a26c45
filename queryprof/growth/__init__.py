"""How the work of statements grows with the data."""
