"""Compares recordings with each other and with a baseline."""
