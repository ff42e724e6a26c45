"""Names of queryprof that tests replace exist: a replaced name that is gone changes nothing."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

REPLACED = re.compile(r"^\W*(queryprof(?:\.\w+)+)\.(\w+) = ", re.MULTILINE)


def test_replaced_names_exist() -> None:
    texts = {path: path.read_text() for path in Path(__file__).parent.rglob("*.py")}
    replaced = {
        (path.name, one[1], one[2]) for path in texts for one in REPLACED.finditer(texts[path])
    }
    assert len(replaced) >= 5
    missing = [one for one in replaced if not hasattr(importlib.import_module(one[1]), one[2])]
    assert missing == []
