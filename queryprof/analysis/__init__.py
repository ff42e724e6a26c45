"""Pure functions that turn a Profile into figures, rankings and findings."""
