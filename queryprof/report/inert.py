r"""Escape text for output: one function per format.

Names of spans, threads, functions, files and tables come from the recorded program, and often from
its clients. The same is true for statements, arguments and exceptions. These texts must not move
the cursor of a terminal, or end a table cell or a comment.

Control characters are written as \x1b, \u202e or \n in every format, so each name stays on one
readable line.
"""

from __future__ import annotations

import json
import re
from typing import Any

_CONTROLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional text controls
    r"\u2028\u2029"  # line and paragraph separators
    r"\ud800-\udfff\ufeff\ufffe\uffff]"  # lone surrogates, BOM, noncharacters
)
_LOG_COMMANDS = re.compile(r"^:(?=:)|#(?=#\[)")
_PLAIN_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_MARKDOWN = str.maketrans({c: "\\" + c for c in "\\`*_{}[]#|~&"} | {"<": "&lt;", ">": "&gt;"})
_TAG_OR_BAR = re.compile(r"<[/!?]|<[A-Za-z](?!>)|\\\|")
"""HTML that some renderers interpret even inside backquotes (a bare <b> is harmless), and a
backslash before a bar. This backslash would cancel the backslash that we add before the bar, so the
bar would end the table cell.
"""
MAX_CELL_CHARACTERS = 300


def escape_control_characters(text: str) -> str:
    """Escape control characters, lone surrogates and CI log commands.

    The log commands are GitHub's: ::name and ##[name].
    """
    return _LOG_COMMANDS.sub(_escape_match, _CONTROLS.sub(_escape_match, text))


def _escape_match(found: re.Match[str]) -> str:
    character = found[0]
    number = ord(character)
    escape = f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
    return _PLAIN_CONTROLS.get(character, escape)


def escape_markdown(text: str) -> str:
    """Escape the characters that have a meaning in Markdown."""
    return escape_control_characters(text).translate(_MARKDOWN)


def inline_markdown_code(text: str) -> str:
    """Return a text as inline code for a table cell, cut to MAX_CELL_CHARACTERS.

    Returns "" for an empty text.
    """
    short = text if len(text) <= MAX_CELL_CHARACTERS else text[:MAX_CELL_CHARACTERS] + " ..."
    short = " ".join(escape_control_characters(short).split())
    if _TAG_OR_BAR.search(short):
        return f"<code>{_escape_html(short)}</code>"
    short = short.replace("|", "\\|")
    fence = "`"
    while fence in short:
        fence += "`"
    pad = " " if "`" in short else ""
    return f"{fence}{pad}{short}{pad}{fence}" if short else ""


def _escape_html(text: str) -> str:
    """Escape a text for HTML inside Markdown: write all punctuation as entities."""
    return "".join(c if c.isalnum() or c in " .,;" else f"&#{ord(c)};" for c in text)


def escape_github_message(text: str) -> str:
    """Escape a text for the message of a workflow command."""
    return escape_control_characters(text).replace("%", "%25")


def escape_github_property(text: str) -> str:
    """Escape a text for a property of a workflow command."""
    return escape_github_message(text).replace(":", "%3A").replace(",", "%2C")


def escape_xml(text: str) -> str:
    """Escape a text for XML, which cannot represent most control characters."""
    return escape_control_characters(text)


def serialize_json(document: Any, indent: int) -> str:
    """Serialize a document as exact ASCII JSON whose only control characters are line ends."""
    return json.dumps(document, indent=indent).replace("\x7f", "\\u007f")
