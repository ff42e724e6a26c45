"""Render reports and findings as text: pure functions, one module per format."""
