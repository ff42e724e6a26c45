"""Parts that all test runners share: measuring a block, its limits, and the baseline."""
