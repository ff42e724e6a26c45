"""Documents for programs."""
