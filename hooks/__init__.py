"""Attach: one module for each thing that queryprof attaches to."""
