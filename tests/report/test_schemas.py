"""`queryprof report --schema` prints a valid JSON Schema of each document."""

from __future__ import annotations

import json

import jsonschema
import pytest

from conftest import Run
from queryprof.report.json.schema import DOCUMENTS

pytestmark = pytest.mark.once


def test_each_document_has_a_schema(queryprof: Run) -> None:
    for name in DOCUMENTS:
        result = queryprof("report", "--schema", name)
        assert result.returncode == 0
        schema = json.loads(result.stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["title"] == f"queryprof {name}"


def test_an_unknown_document_is_reported(queryprof: Run) -> None:
    result = queryprof("report", "--schema", "trace")
    assert result.returncode == 2
    assert "'trace' is not one of 'report', 'findings', 'comparison'" in result.stderr
