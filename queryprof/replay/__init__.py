"""Replays: execute a recorded workload again, on a copy of its database."""
