"""A comparison in the formats of other programs."""
