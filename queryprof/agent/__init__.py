"""The tools of `queryprof mcp`, for agents and editors."""
