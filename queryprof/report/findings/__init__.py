"""Findings as text for terminals, Markdown, GitHub and SARIF."""
