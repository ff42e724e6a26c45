"""Find the template or serializer that reads an attribute and so makes an object mapper load it.

Templates and serializer fields do not appear as lines of the program's Python code.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

MAX_FRAMES = 60


def reading_place() -> str:
    """Return the innermost template or serializer on the stack, or "".

    Examples are "template book.html:12" and "serializer Book.author". This takes some microseconds,
    at the first load of a relation.
    """
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        function = frame.f_code.co_name
        if function == "render_annotated":
            return _django_template(frame)
        if "debug_info" in frame.f_globals and "blocks" in frame.f_globals:
            return _jinja_template(frame)
        if function == "to_representation" and "fields" in frame.f_locals:
            return _serializer_place(frame)
        frame = frame.f_back
    return ""


def _django_template(frame: FrameType) -> str:
    """Return the name and line of the template whose node is being rendered."""
    node = frame.f_locals.get("self")
    name = getattr(getattr(node, "origin", None), "template_name", None) or "(a string)"
    line = getattr(getattr(node, "token", None), "lineno", 0)
    return f"template {name}:{line}"


def _jinja_template(frame: FrameType) -> str:
    """Return the name and line of the template whose compiled code runs in the frame.

    debug_info has pairs of template line and code line, in ascending order
    (https://jinja.palletsprojects.com/en/stable/api/#jinja2.Environment.compile).
    """
    line = 0
    for pair in str(frame.f_globals["debug_info"]).split("&"):
        of_template, _, of_code = pair.partition("=")
        if of_code.isdecimal() and int(of_code) <= frame.f_lineno:
            line = int(of_template)
    return f"template {frame.f_globals.get('name') or '(a string)'}:{line}"


def _serializer_place(frame: FrameType) -> str:
    """Return the serializer class of Django REST framework, and the field that is being read."""
    name = type(frame.f_locals.get("self")).__name__
    field = getattr(frame.f_locals.get("field"), "field_name", None)
    return f"serializer {name}.{field}" if field else f"serializer {name}"
