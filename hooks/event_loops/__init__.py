"""Attaching to event loops."""
