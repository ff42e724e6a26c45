"""Split statements into tokens, and find their clauses and triggers."""
