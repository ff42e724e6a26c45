"""Random names: what in a statement's identifiers differs from run to run, made the same.

Programs and tests name tables after a uuid, a hash, a counter or the time. Literals are "?" in a
statement already, so what is random in it stands in identifiers. Random names that look like words
(ten random letters) are not recognized here; queryprof.analysis.renamed pairs them.
"""

from __future__ import annotations

import re
from functools import lru_cache

RANDOM = "<random>"
"""The placeholder for the random part of a name."""

_RANDOM = re.compile(
    r"[0-9a-fA-F]{8}([-_])[0-9a-fA-F]{4}\1[0-9a-fA-F]{4}\1[0-9a-fA-F]{4}\1[0-9a-fA-F]{12}"
    r"|(?<![0-9a-fA-F])(?=[a-fA-F]*[0-9])(?=[0-9]*[a-fA-F])[0-9a-fA-F]{8,}"
    r"|[0-9]{6,}"
)
"""A uuid; 8 or more hex digits, of both digits and letters; 6 or more digits (a time, an id)."""


@lru_cache(maxsize=8192)
def fold_random(text: str) -> str:
    """A statement or a step of a plan with "<random>" for each random part of a name."""
    return _RANDOM.sub(RANDOM, text)
