"""Tuning: what to try next, and what the results of trials show. What runs them is elsewhere."""
