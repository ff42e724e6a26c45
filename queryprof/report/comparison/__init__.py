"""A comparison for other programs' formats."""
