"""Holds sitecustomize.py, whose directory `queryprof run` puts on PYTHONPATH."""
