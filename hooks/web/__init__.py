"""Spans for the requests of web applications."""
