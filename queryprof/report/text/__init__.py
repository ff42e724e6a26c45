"""Sentences about findings, for every renderer."""
