"""Load the fleet's questions: SQL queries that run in both DuckDB and Apache Spark."""

from __future__ import annotations

import re
from importlib.resources import files as resources

PARAMETER = re.compile(r"\$([a-z_0-9]+)")
"""Matches a parameter in the SQL of a question."""

SLOWER, FASTER, MORE_STEPS = 1.05, 0.95, 1.5
"""A version is slower above the ratio SLOWER, faster below FASTER, and takes more VM steps above
MORE_STEPS.
"""

DEFAULTS = {"slower": SLOWER, "faster": FASTER, "more_steps": MORE_STEPS, "by": "few", "top": 0}
"""Default values of the questions' parameters."""


def question_sql(name: str) -> str:
    """Return the SQL of a question."""
    return resources("queryprof.fleet").joinpath("questions", f"{name}.sql").read_text("utf-8")
