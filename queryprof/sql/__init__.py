"""The text of statements, taken apart into tokens, and what can be read from these."""
