"""Split a statement into tokens, as SQLite's tokenizer does
(https://www.sqlite.org/draft/tokenreq.html).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar

MAX_CHARACTERS = 10_000
"""Only this many characters of a statement are parsed; the rest is ignored."""

SHORT_CHARACTERS = 1000
"""Maximum length of a short statement, in characters."""

Made = TypeVar("Made")

# An unterminated comment or string extends to the end, so that each character is scanned only once.
_TOKEN = re.compile(
    r"""  # the kinds of tokens
        (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
      | (?P<text> [xX]?'(?:[^']|'')*(?:'|\Z) )
      | (?P<name> "(?:[^"]|"")*(?:"|\Z) | `(?:[^`]|``)*(?:`|\Z) | \[[^\]]*(?:\]|\Z) )
      | (?P<parameter> \?\d* | [:@$]\w+ )
      | (?P<word> [^\W\d][\w$]* )
      | (?P<number> \.?\d[\w.]* )
      | (?P<sign> ->>? | \|\| | <> | <= | >= | == | != | << | >> | \S )""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A token.

    Attributes:
        kind: text, name (quoted), parameter, word (a keyword or a name), number or sign.
        start: offset in the statement.
        depth: the number of parentheses around the token. A parenthesis does not count itself.
    """

    kind: str
    text: str
    start: int
    depth: int

    @property
    def keyword(self) -> str:
        """The token in capitals if it may be a keyword; else ""."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def named(self) -> str:
        """The token in lower case without quotes if it may be a name; else ""."""
        if self.kind == "word":
            return self.text.lower()
        if self.kind != "name":
            return ""
        quote = {"[": "]"}.get(self.text[0], self.text[0])
        return self.text[1:].removesuffix(quote).replace(quote * 2, quote).lower()


def cache_by_statement(function: Callable[[str], Made]) -> Callable[[str], Made]:
    """Cache a function of a statement: many results for short statements, few for long statements.

    The limit keeps a file of very long statements from filling the memory.
    """
    of_short, of_long = lru_cache(4096)(function), lru_cache(64)(function)

    def made(statement: str) -> Made:
        return of_short(statement) if len(statement) <= SHORT_CHARACTERS else of_long(statement)

    return made


@cache_by_statement
def tokens_of(statement: str) -> tuple[Token, ...]:
    """Return the tokens of a statement, without comments."""
    return tuple(_parse_tokens(statement))


def first_token(statement: str) -> Token | None:
    """Return the first token of a statement, without parsing the rest."""
    return next(_parse_tokens(statement), None)


def parameters_in(statement: str) -> list[tuple[int, int]]:
    """Return the start and end of each parameter in a statement of any length."""
    return [found.span() for found in _TOKEN.finditer(statement) if found.lastgroup == "parameter"]


def _parse_tokens(statement: str) -> Iterator[Token]:
    depth = 0
    for match in _TOKEN.finditer(statement, 0, MAX_CHARACTERS):
        kind, text = match.lastgroup or "", match[0]
        if kind == "comment":
            continue
        depth -= text == ")" and depth > 0
        yield Token(kind, text, match.start(), depth)
        depth += text == "("
