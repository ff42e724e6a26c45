"""The tokens of a statement, as SQLite's tokenizer finds them
(https://www.sqlite.org/draft/tokenreq.html).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar

MOST_CHARACTERS = 10_000
"""Of a statement; what comes after them is not looked at."""

SHORT = 1000
"""Characters of a statement, up to which it is short."""

Made = TypeVar("Made")

# What is not ended goes on to the end of the text, so that each character is looked at once.
_TOKEN = re.compile(
    r"""(?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
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
        kind: text, name (in quotes), parameter, word (a keyword or a name), number or sign.
        start: where it begins in the statement.
        depth: how many parentheses it is in; of a parenthesis, those around it.
    """

    kind: str
    text: str
    start: int
    depth: int

    @property
    def keyword(self) -> str:
        """In capitals what may be a keyword; else empty."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def named(self) -> str:
        """The name that it may be, in small letters and without quotes; else empty."""
        if self.kind == "word":
            return self.text.lower()
        if self.kind != "name":
            return ""
        quote = {"[": "]"}.get(self.text[0], self.text[0])
        return self.text[1:].removesuffix(quote).replace(quote * 2, quote).lower()


def kept(function: Callable[[str], Made]) -> Callable[[str], Made]:
    """A function of a statement that keeps what it has made: of many short ones, and of few long
    ones, so that no file fills the memory with statements of ten thousand tokens.
    """
    of_short, of_long = lru_cache(4096)(function), lru_cache(64)(function)

    def made(statement: str) -> Made:
        return of_short(statement) if len(statement) <= SHORT else of_long(statement)

    return made


@kept
def tokens_of(statement: str) -> tuple[Token, ...]:
    """The tokens of a statement, without comments."""
    return tuple(_tokens(statement))


def first_token(statement: str) -> Token | None:
    """The first token of a statement; the others are not looked for."""
    return next(_tokens(statement), None)


def parameters_in(statement: str) -> list[tuple[int, int]]:
    """Where the parameters of a statement begin and end, however long it is."""
    return [found.span() for found in _TOKEN.finditer(statement) if found.lastgroup == "parameter"]


def _tokens(statement: str) -> Iterator[Token]:
    depth = 0
    for match in _TOKEN.finditer(statement, 0, MOST_CHARACTERS):
        kind, text = match.lastgroup or "", match[0]
        if kind == "comment":
            continue
        depth -= text == ")" and depth > 0
        yield Token(kind, text, match.start(), depth)
        depth += text == "("
