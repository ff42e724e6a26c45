r"""Escapes names for output: one function for each format, which makes a text mean nothing but
itself there.

Names of spans, threads, functions, files and tables, statements, arguments and exceptions come from
the recorded program, and often from its clients. None of them may move the cursor of a terminal,
end a cell or a comment. Control characters are written as \x1b, \u202e
or \n everywhere, so that a name is one line and can be read.
"""

from __future__ import annotations

import json
import re
from typing import Any

_CONTROLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of writing
    r"\u2028\u2029"  # line and paragraph separators
    r"\ud800-\udfff\ufeff\ufffe\uffff]"  # halves of characters, and what is none
)
_LOG_COMMANDS = re.compile(r"^:(?=:)|#(?=#\[)")
_PLAIN_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_MARKDOWN = str.maketrans({c: "\\" + c for c in "\\`*_{}[]#|~&"} | {"<": "&lt;", ">": "&gt;"})
_TAG_OR_BAR = re.compile(r"<[/!?]|<[A-Za-z](?!>)|\\\|")
"""What some renderers take for HTML in spite of backquotes (a bare <b> does no harm), and a bar
that would end a table's cell, since a backslash before it cancels the added one."""
LONGEST_CELL = 300


def visible(text: str) -> str:
    """A text with escapes for control characters, lone surrogates, and the beginnings of
    commands in a continuous integration's log (GitHub's ::name and ##[name]).
    """
    return _LOG_COMMANDS.sub(_shown, _CONTROLS.sub(_shown, text))


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    number = ord(character)
    escape = f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
    return _PLAIN_CONTROLS.get(character, escape)


def markdown(text: str) -> str:
    """A text with the characters that have a meaning in Markdown escaped."""
    return visible(text).translate(_MARKDOWN)


def markdown_code(text: str) -> str:
    """A text as code in a table's cell, cut to LONGEST_CELL; empty for no text."""
    short = text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + " ..."
    short = " ".join(visible(short).split())
    if _TAG_OR_BAR.search(short):
        return f"<code>{_entities(short)}</code>"
    short = short.replace("|", "\\|")
    fence = "`"
    while fence in short:
        fence += "`"
    pad = " " if "`" in short else ""
    return f"{fence}{pad}{short}{pad}{fence}" if short else ""


def _entities(text: str) -> str:
    """A text for HTML inside Markdown: all that is punctuation in either as an entity."""
    return "".join(c if c.isalnum() or c in " .,;" else f"&#{ord(c)};" for c in text)


def github_data(text: str) -> str:
    """A text as the message of a workflow command."""
    return visible(text).replace("%", "%25")


def github_property(text: str) -> str:
    """A text as a property of a workflow command."""
    return github_data(text).replace(":", "%3A").replace(",", "%2C")


def xml_text(text: str) -> str:
    """A text for XML, which has no way to write most control characters."""
    return visible(text)


def json_text(document: Any, indent: int) -> str:
    """A document as JSON: exact, in ASCII, and without control characters but line ends."""
    return json.dumps(document, indent=indent).replace("\x7f", "\\u007f")
