"""What the setting queryprof_fail_on can name beside findings; it imports nothing."""

GATES = frozenset({"counts", "plans", "vmsteps", "stalls", "time"})
"""What is compared with a baseline, or with what a test took before."""
