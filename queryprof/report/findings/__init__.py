"""Findings as text, Markdown, GitHub annotations and SARIF."""
