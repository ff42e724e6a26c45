"""The command line of a recorded process in the form that a trace keeps.

It contains the program and the names of options. Values are replaced, because they may be secret,
like bound parameters: --password=..., a token, a customer's file.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HIDDEN = "?"
"""The text in place of a value, as in statements."""

_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python that take the next argument."""

_SERVERS = ("uvicorn", "gunicorn", "hypercorn", "daphne", "granian", "waitress-serve", "waitress")
"""Servers whose arguments name the object that they serve."""

_IN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
"""Characters of a long option's name. A value that is joined to the name with a character other
than "=" is not recognized.

This is not a regular expression, because a recorded program need not import `re`.
"""


def without_values(arguments: Sequence[str], directory: str = "") -> list[str]:
    """Replace the values in a Python process's arguments (sys.orig_argv) by "?".

    The names of options stay. For a server, the object that it serves stays (shop.asgi:app): this
    is the first argument that names an object in a module of the directory and does not follow an
    option.
    """
    shown = list(arguments[:1])
    program = ""
    rest = iter(arguments[1:])
    for argument in rest:
        shown.append(argument)
        if argument in _WITH_VALUE:
            shown += [value for value in [next(rest, None)] if value is not None]
        elif argument == "-m":
            program = next(rest, "")
            shown += [program] if program else []
            break
        elif argument == "-c":
            shown += [HIDDEN for _ in [next(rest, None)]]
            break
        elif argument == "-" or not argument.startswith("-"):
            program = os.path.basename(argument)
            break
    is_server, before = program in _SERVERS, ""
    for argument in rest:
        is_name = is_server and not before.startswith("-") and _names_object(argument, directory)
        shown.append(argument if is_name else _without_value(argument))
        is_server, before = is_server and not is_name, argument
    return shown


def _names_object(argument: str, directory: str) -> bool:
    module, _, name = argument.partition(":")
    parts = module.split(".")
    if not directory or not all(map(str.isidentifier, [name, *parts])):
        return False
    path = os.path.join(directory, *parts)
    return os.path.isfile(f"{path}.py") or os.path.isfile(os.path.join(path, "__init__.py"))


def _without_value(argument: str) -> str:
    if not argument.startswith("-"):
        return HIDDEN
    if argument.startswith("--"):
        name, equals, _ = argument.partition("=")
        is_name = _IN_NAMES.issuperset(name) and (name[2:3].isalnum() or argument == "--")
        return name + (equals and equals + HIDDEN) if is_name else "--" + HIDDEN
    return argument if len(argument) <= 2 else argument[:2] + HIDDEN
