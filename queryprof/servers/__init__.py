"""Plans and times from database servers."""
