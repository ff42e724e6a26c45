"""Hooks for event loops."""
