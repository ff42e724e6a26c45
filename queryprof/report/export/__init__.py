"""The database time in the formats of other viewers."""
