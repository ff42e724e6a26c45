"""What tests of any runner share: how a block is measured, its limits, and the baseline."""
