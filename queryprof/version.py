"""The version of queryprof, in one place."""

__version__ = "0.1.0"
