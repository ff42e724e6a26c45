"""Untrusted texts do nothing where they are shown."""

from __future__ import annotations

import pytest

from queryprof.report.inert import escape_control_characters

pytestmark = pytest.mark.once


def test_commands_in_the_logs_of_runners_are_escaped() -> None:
    """GitHub's runner reads ::name at the start of a line, Azure's ##[name] anywhere."""
    assert escape_control_characters("::error::x") == "\\x3a:error::x"
    assert escape_control_characters("a ##[error]x ##vso[y]") == "a \\x23#[error]x ##vso[y]"
    assert escape_control_characters("a::b # c ##") == "a::b # c ##"
