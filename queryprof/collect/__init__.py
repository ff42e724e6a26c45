"""Collect the regions of processes into one trace."""
