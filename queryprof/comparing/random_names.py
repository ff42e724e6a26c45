"""Replace the parts of identifiers that differ from run to run.

Programs and tests name tables after a uuid, a hash, a counter or the time. Only identifiers can
contain such parts, because statements already have "?" for literals. This module does not recognize
random names that look like words, such as ten random letters; queryprof.comparing.renamed pairs
statements with such names.
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
"""A uuid; 8 or more hex digits that include digits and letters; or 6 or more digits (a time, an
id).
"""


@lru_cache(maxsize=8192)
def fold_random_names(text: str) -> str:
    """Replace each random part of a name in a statement or plan step with "<random>"."""
    return _RANDOM.sub(RANDOM, text)
