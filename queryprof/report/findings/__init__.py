"""Findings in words, and as Markdown, GitHub annotations and SARIF."""
