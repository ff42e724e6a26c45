"""Statistics of measured times: intervals of means and ratios, and a rank test."""
