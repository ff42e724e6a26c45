"""Findings: why a program's database work is slow, what to change, and the most that it can win."""
