"""Hooks for database drivers."""
