"""The length and the number of windows: valid and invalid settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from core.window_programs import run

import queryprof as package
from conftest import Run
from queryprof.errors import SettingsError

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("QUERYPROF_WINDOW", "7m"),
        ("QUERYPROF_WINDOW", "-1h"),
        ("QUERYPROF_WINDOW", "1y"),
        ("QUERYPROF_KEEP", "0"),
        ("QUERYPROF_KEEP", "-1"),
        ("QUERYPROF_KEEP", "1e3"),
        ("QUERYPROF_KEEP", "100001"),
        ("QUERYPROF_KEEP", "9" * 5000),
    ],
)
def test_a_length_or_number_that_is_none(variable: str, value: str) -> None:
    """The program runs, and one line says why it is not recorded."""
    result = run("print('ran')", QUERYPROF="x.qprof", **{"QUERYPROF_WINDOW": "1h", variable: value})
    assert (result.returncode, result.stdout) == (0, "ran\n")
    (line,) = result.stderr.splitlines()
    wanted = "one of 5m, 15m, 1h, 6h, 1d" if variable == "QUERYPROF_WINDOW" else "1 to 100000"
    assert line.startswith(f"queryprof: this process is not recorded: {variable} must be {wanted}")
    assert not list(Path().glob("x*"))


def test_no_length_is_none() -> None:
    result = run("print('ran')", QUERYPROF="x.qprof", QUERYPROF_WINDOW="", QUERYPROF_KEEP="")
    assert (result.returncode, result.stderr) == (0, "")
    assert Path("x.qprof").exists()
    result = run("print('ran')", QUERYPROF="y.qprof", QUERYPROF_WINDOW="1h", QUERYPROF_KEEP="")
    assert (result.returncode, result.stderr) == (0, "")
    assert not Path("y.qprof").exists()
    with pytest.raises(SettingsError, match="window must be one of 5m, 15m, 1h, 6h, 1d, not '2h'"):
        package.install("x.qprof", window="2h")
    with pytest.raises(SettingsError, match="not 3600"):
        package.install("x.qprof", window=3600)  # type: ignore[arg-type]


@pytest.mark.slow
def test_doctor_names_them(queryprof: Run) -> None:
    result = queryprof("doctor", env={"QUERYPROF_WINDOW": "6h", "QUERYPROF_KEEP": "3"})
    (line,) = [one for one in result.stdout.splitlines() if one.startswith("windows")]
    assert line.endswith("one file per 6h instead of one trace; each process keeps its latest 3")
    assert "windows" not in queryprof("doctor").stdout
    refused = queryprof("doctor", env={"QUERYPROF_WINDOW": "2h"})
    assert (refused.returncode, refused.stdout) == (2, "")
