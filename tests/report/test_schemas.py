"""The JSON Schemas that are shipped are those of the documents; QUERYPROF_GOLDEN=write
writes them.
"""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from analysis.by_hand import WRITE
from report.json_schema import schema_text

import queryprof.report
from queryprof.report.json.comparison import Document as ComparisonDocument
from queryprof.report.json.findings import Document as FindingsDocument
from queryprof.report.json.report_types import Document as ReportDocument

pytestmark = pytest.mark.once

FOLDER = Path(queryprof.report.__path__[0])
SCHEMAS = {
    "report-schema.json": (ReportDocument, "queryprof report"),
    "findings-schema.json": (FindingsDocument, "queryprof findings"),
    "comparison-schema.json": (ComparisonDocument, "queryprof comparison"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_up_to_date(name: str) -> None:
    text = schema_text(*SCHEMAS[name])
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    if WRITE:
        (FOLDER / name).write_text(text)
    assert (FOLDER / name).read_text() == text
