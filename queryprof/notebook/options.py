"""The options of the magics."""

from __future__ import annotations

from dataclasses import dataclass, replace

OPTIONS = {"-o": "name", "--against": "against", "--trace": "trace"}

USAGE = """\
%%queryprof [-o NAME] [--against NAME] [--trace FILE]
    Records the cell below it, and shows what to do, and the vital few statements. If the cell is
    run again, it shows what has changed.
%queryprof [options] STATEMENT
    The same for a statement. Its value is the line's.
%queryprof
    The last recording, as queryprof.profile() returns one.

-o NAME         keeps the recording in this variable
--against NAME  shows what has changed since the recording in this variable
--trace FILE    keeps a trace, for the command queryprof"""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one use; "": not given."""

    name: str = ""
    against: str = ""
    trace: str = ""


def read_options(line: str) -> tuple[Options, str]:
    """The options at the beginning of a line, and what follows them.

    Raises:
        ValueError: an option is not known, or lacks its value.
    """
    options, rest = Options(), line.strip()
    while rest.startswith("-"):
        option, *values = rest.split(maxsplit=2)
        if option not in OPTIONS:
            raise ValueError(f"there is no option {option}; the options: {', '.join(OPTIONS)}")
        if not values:
            raise ValueError(f"{option} needs a value: %queryprof? shows the options")
        if option in ("-o", "--against") and not values[0].isidentifier():
            raise ValueError(f"{option} {values[0]}: is no name of a variable")
        options = replace(options, **{OPTIONS[option]: values[0]})
        rest = values[1] if len(values) > 1 else ""
    return options, rest
