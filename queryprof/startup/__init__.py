"""Contains sitecustomize.py. `queryprof run` puts its directory on PYTHONPATH."""
