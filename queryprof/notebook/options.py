"""The options of the magics."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from keyword import iskeyword

OPTIONS = {"-o": "name", "--against": "against", "--trace": "trace"}

OPTION = re.compile(
    r"""  # an option and its value
        (-[a-zA-Z]|--[a-zA-Z][\w-]*)  # its name
        (?:=|\s+|$)
        (?:"([^"]*)"|'([^']*)'|(\S*))\s*""",
    re.VERBOSE,
)

USAGE = """\
%%queryprof [-o NAME] [--against NAME] [--trace FILE]
    Records the cell, and shows what to do, and the vital few statements. If you run the cell
    again, it also shows what has changed.
%queryprof [options] STATEMENT
    Does the same for one statement, and returns the statement's value.
%queryprof
    Returns the last recording, an object like that of queryprof.profile().

-o NAME         keeps the recording in this variable
--against NAME  shows what has changed since the recording in this variable
--trace FILE    writes a trace, for the command queryprof"""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one use; "" for options that are not given."""

    name: str = ""
    against: str = ""
    trace: str = ""


def read_options(line: str) -> tuple[Options, str]:
    """Return the options at the beginning of a line, and the rest of the line.

    Raises:
        ValueError: an option is unknown, or lacks its value.
    """
    options, rest = Options(), line.strip()
    while found := OPTION.match(rest):
        option, value = found[1], found[2] or found[3] or found[4]
        if option in ("-h", "--help"):
            raise ValueError(USAGE)
        if option not in OPTIONS:
            raise ValueError(f"unknown option {option}; the options are {', '.join(OPTIONS)}")
        if not value:
            raise ValueError(f"{option} needs a value: %queryprof? shows the options")
        if option == "--trace":
            value = os.path.abspath(os.path.expanduser(value))
        elif not value.isidentifier() or iskeyword(value):
            raise ValueError(f"{option} {value}: not a variable name")
        options = replace(options, **{OPTIONS[option]: value})
        rest = rest[found.end() :]
    return options, rest
