"""Replays: a recorded workload is executed again on a copy of its database."""
