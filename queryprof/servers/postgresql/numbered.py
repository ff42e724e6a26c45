"""Replace a recorded statement's placeholders by PostgreSQL's parameters: $1, $2 ..."""

from __future__ import annotations

import re
from itertools import count

from queryprof.sql.tokens import MAX_CHARACTERS

# Unterminated comments and strings end with the text, as in sql/tokens.
_PIECE = re.compile(
    r"""  # the pieces of a statement
        (?P<skipped> --[^\n]* | /\*.*?(?:\*/|\Z) | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) )
      | (?P<numbered> \$\d+ )
      | (?P<named> %\((?P<name>[^)]*)\)[sbt] )
      | (?P<format> %[sbt]\b )
      | (?P<percent> %% )
      | (?P<literal> \? )""",
    re.VERBOSE | re.DOTALL,
)

NUMBER = re.compile(r"\$(\d+)")
MAX_PARAMETERS = 1000


def number_parameters(statement: str) -> tuple[str, int] | None:
    """Return the statement with numbered parameters, and the number of parameters.

    A recording has `?` for each literal. %s and %(name)s are psycopg's placeholders
    (https://www.psycopg.org/psycopg3/docs/basic/params.html), and $1 is PostgreSQL's own. In a
    statement with $1, % is an operator.

    Returns None if the statement is too long, has too many parameters, or contains a zero byte.
    """
    if len(statement) > MAX_CHARACTERS or "\0" in statement:
        return None
    found = list(_PIECE.finditer(statement))
    own = [int(one["numbered"][1:]) for one in found if one["numbered"]]
    if any(number > MAX_PARAMETERS for number in own):
        return None
    numbers = count(max(own, default=0) + 1)
    names: dict[str, int] = {}
    pieces: list[str] = []
    end = 0
    for one in found:
        kind, text = one.lastgroup, one[0]
        pieces.append(statement[end : one.start()])
        end = one.end()
        if kind == "literal" or (kind == "format" and not own):
            text = f"${next(numbers)}"
        elif kind in ("named", "name") and not own:
            if one["name"] not in names:
                names[one["name"]] = next(numbers)
            text = f"${names[one['name']]}"
        elif kind == "percent" and not own:
            text = "%"
        pieces.append(text)
    number = next(numbers) - 1
    return ("".join((*pieces, statement[end:])), number) if number <= MAX_PARAMETERS else None
