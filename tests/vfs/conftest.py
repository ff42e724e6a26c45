"""The tools that the file tests load."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the library of tools.c. The value is "" if it cannot be compiled."""
    library = tmp_path_factory.mktemp("tools") / "tools.so"
    source = Path(__file__).with_name("tools.c")
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-lsqlite3"]
    if (
        not shutil.which("gcc")
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        return ""
    return str(library)
