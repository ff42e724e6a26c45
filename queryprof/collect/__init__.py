"""Keep: from the regions of processes to one trace."""
