"""Reports for a terminal, with rich."""
