"""Export to speedscope (https://www.speedscope.app/file-format-schema.json) as a sampled
profile.
"""

from __future__ import annotations

import json
from typing import Any

from queryprof.report.export.weights import SQL_FILE, CallPathWeight, FunctionNode
from queryprof.version import __version__

MARK = b'{"exporter":"queryprof '


def speedscope_file(weights: list[CallPathWeight], name: str) -> bytes:
    """Return the file, with one stack per weight; times are in ns."""
    numbers: dict[FunctionNode, int] = {}
    samples = [[numbers.setdefault(node, len(numbers)) for node in w.nodes] for w in weights]
    document = {
        # first, because the beginning identifies the file as ours
        "exporter": f"queryprof {__version__}",
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": [_speedscope_frame(node) for node in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": name,
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": sum(weight.ns for weight in weights),
                "samples": samples,
                "weights": [weight.ns for weight in weights],
            }
        ],
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _speedscope_frame(node: FunctionNode) -> dict[str, Any]:
    has_place = node.file not in (SQL_FILE, "~")
    return {"name": node.name, **({"file": node.file, "line": node.line} if has_place else {})}
