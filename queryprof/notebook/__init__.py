"""IPython and notebooks: the magics."""
