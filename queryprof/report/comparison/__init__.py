"""A comparison in formats that other programs read."""
