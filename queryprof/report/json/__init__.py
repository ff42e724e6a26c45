"""JSON documents for other programs."""
