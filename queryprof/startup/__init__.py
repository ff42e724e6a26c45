"""Contains sitecustomize.py. `queryprof run` puts this directory on PYTHONPATH."""
