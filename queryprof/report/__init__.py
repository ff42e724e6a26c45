"""Say: pure functions from findings to text, one module a format."""
