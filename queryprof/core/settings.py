"""Settings: `[tool.queryprof]` of pyproject.toml or `[queryprof]` of setup.cfg, in the working
directory.

    roots = ["src", "/opt/app"]   further directories with code of the program
    call_path_frames = 6          the program's frames in a call path, 1 to 8
    parameters = false            keep SQL texts and parameters of the slowest executions
    explain_locks = false         add the lock holder to "database is locked" exceptions
    plans = true                  read the plan of each new statement
    stall_ms = 50                 shortest step of an event loop that is a stall
    heartbeat_ms = 100            interval of measuring an event loop's lag
    recent_calls = 65536          newest calls that a process keeps for `queryprof last`
"""

from __future__ import annotations

import os

from queryprof.core.deployment import deployment_names
from queryprof.core.user_code import ROOTS_VARIABLE, working_directory
from queryprof.errors import SettingsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Kind = tuple[str, Callable[[str], object], Callable[[object], bool]]
    """A kind of value: a description for messages, a function that parses text or raises
    ValueError, and a function that checks a value.
    """

PARAMETERS_VARIABLE = "QUERYPROF_PARAMETERS"
EXPLAIN_LOCKS_VARIABLE = "QUERYPROF_EXPLAIN_LOCKS"
STALL_VARIABLE = "QUERYPROF_STALL_MS"
WINDOW_VARIABLE = "QUERYPROF_WINDOW"
KEEP_VARIABLE = "QUERYPROF_KEEP"
WORKLOAD_VARIABLE = "QUERYPROF_WORKLOAD"
"""The maximum size of a process's workload in bytes, a colon, and the start of its file's path."""

MINUTE_NS = 60 * 10**9
WINDOWS_NS = {
    "5m": 5 * MINUTE_NS,
    "15m": 15 * MINUTE_NS,
    "1h": 60 * MINUTE_NS,
    "6h": 360 * MINUTE_NS,
    "1d": 1440 * MINUTE_NS,
}
"""The possible lengths of windows. They divide a day, so that each window belongs to one date."""

KEPT, MAX_KEPT = 48, 100_000
"""The number of windows kept per process: the default and the maximum."""

MAXIMUM_CALL_PATH_FRAMES = 8
MAX_RECENT_CALLS = 65536
"""The same number as QP_RECENT_CALLS in core/memory/tables.h. The calls take 1 MiB of memory."""

MINIMUM_MS = 1.0
MAXIMUM_MS = 3_600_000.0


def _parse_bool(text: str) -> bool:
    """Parse a boolean in the words of configparser."""
    words = {
        "1": True,
        "yes": True,
        "true": True,
        "on": True,
        "0": False,
        "no": False,
        "false": False,
        "off": False,
    }
    if text.lower() not in words:
        raise ValueError(f"Not a boolean: {text}")
    return words[text.lower()]


def _is_milliseconds(value: object) -> bool:
    return type(value) in (int, float) and MINIMUM_MS <= value <= MAXIMUM_MS  # type: ignore[operator]


def _is_frames(value: object) -> bool:
    return type(value) is int and 1 <= value <= MAXIMUM_CALL_PATH_FRAMES


def _is_calls(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_RECENT_CALLS


def _is_directories(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(root, str) for root in value)


DIRECTORIES = ("a list of directories", str.split, _is_directories)
FRAMES = (f"1 to {MAXIMUM_CALL_PATH_FRAMES}", int, _is_frames)
TRUTH = ("true or false", _parse_bool, lambda value: isinstance(value, bool))
MILLISECONDS = (f"{MINIMUM_MS:g} to {MAXIMUM_MS:g}", float, _is_milliseconds)

CALLS = (f"0 to {MAX_RECENT_CALLS}", int, _is_calls)

MAX_BYTES = 10_000_000
"""Maximum size of a file that is read for settings."""

NON_SETTING_KEYS = {"accepted"}
"""Keys of [tool.queryprof] that are not settings. `accepted` lists findings that the project
accepts, for `queryprof analyze`.
"""

SETTINGS: dict[str, tuple[Kind, object]] = {
    "roots": (DIRECTORIES, ()),
    "call_path_frames": (FRAMES, 6),
    "parameters": (TRUTH, False),
    "explain_locks": (TRUTH, False),
    "plans": (TRUTH, True),
    "stall_ms": (MILLISECONDS, 50.0),
    "heartbeat_ms": (MILLISECONDS, 100.0),
    "recent_calls": (CALLS, MAX_RECENT_CALLS),
}
"""The kind and the default of each setting."""


class Settings:
    """All settings. Settings that are not chosen have the defaults in SETTINGS.

    Attributes:
        roots: absolute directories with code of the program, in addition to the working directory
            and the script's.
        call_path_frames: the number of the program's frames in a call path.
        parameters: whether to keep SQL texts and parameters of the slowest executions.
        explain_locks: whether exceptions about locks get a note (PEP 678) with the lock holder.
        plans: whether to read the plan of each new statement from SQLite.
        stall_ms: the shortest step of an event loop that is a stall.
        heartbeat_ms: the interval of measuring an event loop's lag.
        recent_calls: the number of newest calls to keep.
        deployment: service, version and environment; each is None if it is not set.
        window_ns: the length of the trace's windows; 0 if the trace is one file.
        kept: the number of latest windows to keep per process.
        workload: BYTES:PREFIX for the file of the executions; "" for none.

    Only the environment sets the last four attributes. queryprof.install also sets `window_ns`.

    Raises:
        SettingsError: a value has the wrong type or is out of range.
    """

    __slots__ = (*SETTINGS, "deployment", "kept", "window_ns", "workload")
    roots: tuple[str, ...]
    call_path_frames: int
    parameters: bool
    explain_locks: bool
    plans: bool
    stall_ms: float
    heartbeat_ms: float
    recent_calls: int
    deployment: Mapping[str, str | None]
    window_ns: int
    kept: int
    workload: str

    def __init__(self, **chosen: object) -> None:
        for name, (_, default) in SETTINGS.items():
            setattr(self, name, _checked_value(name, chosen.get(name, default)))
        self.deployment, self.workload = {}, ""
        self.window_ns, self.kept = 0, KEPT
        self.roots = tuple(os.path.abspath(root) for root in self.roots)


def _checked_value(name: str, value: object) -> object:
    """Return the value of a setting; text is parsed. Raises SettingsError for an invalid value."""
    kind, _ = SETTINGS[name]
    wants, parse, fits = kind
    try:
        if isinstance(value, str) and kind is not DIRECTORIES:
            value = parse(value)
    except ValueError:
        pass  # raised below
    if not fits(value):
        raise SettingsError(f"{name} must be {wants}, not {value!r}")
    return value


def read_settings(
    directory: str | None = None, environ: Mapping[str, str] = os.environ
) -> Settings:
    """Return the settings of a directory (by default the working directory) and of the environment.

    Raises:
        SettingsError: a file cannot be read, or has an invalid setting.
    """
    directory = directory or working_directory()
    table = _read_pyproject(os.path.join(directory, "pyproject.toml"))
    if table is None:
        table = _read_setup_cfg(os.path.join(directory, "setup.cfg"))
    chosen = dict(table or {})
    unknown = sorted(set(chosen) - set(SETTINGS) - NON_SETTING_KEYS)
    if unknown:
        raise SettingsError(f"queryprof has no setting {unknown[0]!r} (in {directory})")
    roots = _checked_value("roots", chosen.get("roots", ()))
    extra = environ.get(ROOTS_VARIABLE, "").split(os.pathsep)
    chosen["roots"] = (
        *(os.path.join(directory, root) for root in roots),  # type: ignore[attr-defined]
        *(root for root in extra if root),
    )
    if environ.get(EXPLAIN_LOCKS_VARIABLE) == "1":
        chosen["explain_locks"] = True
    if environ.get(PARAMETERS_VARIABLE) == "1":
        chosen["parameters"] = True
    if STALL_VARIABLE in environ:
        chosen["stall_ms"] = environ[STALL_VARIABLE]
    settings = Settings(**chosen)
    settings.workload = environ.get(WORKLOAD_VARIABLE, "")
    settings.deployment = deployment_names(environ)
    if environ.get(WINDOW_VARIABLE):
        settings.window_ns = parse_window_ns(environ[WINDOW_VARIABLE], WINDOW_VARIABLE)
    if environ.get(KEEP_VARIABLE):
        settings.kept = _parse_kept_windows(environ[KEEP_VARIABLE])
    return settings


def parse_window_ns(length: object, name: str = "window") -> int:
    """Return the length of windows in ns. Raises SettingsError."""
    found = WINDOWS_NS.get(length) if isinstance(length, str) else None
    if found is None:
        raise SettingsError(f"{name} must be one of {', '.join(WINDOWS_NS)}, not {length!r}")
    return found


def _parse_kept_windows(text: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) < 9 and 1 <= int(text) <= MAX_KEPT):
        raise SettingsError(f"{KEEP_VARIABLE} must be 1 to {MAX_KEPT}, not {text!r}")
    return int(text)


def _read_text(path: str) -> str:
    """Return the text of a regular file; "" for a missing file or another kind of file. Reading a
    pipe or a device might never end.
    """
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_BYTES)
            if len(text) == MAX_BYTES:
                raise SettingsError(f"{path}: is too large for settings")
            return text
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from error


def _read_pyproject(path: str) -> Mapping[str, object] | None:
    text = _read_text(path)
    if "tool.queryprof" not in text:  # so that the program need not import a TOML parser
        return None
    import tomllib

    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: not valid TOML: {error}") from error
    table = tool.get("queryprof") if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else None


def _read_setup_cfg(path: str) -> Mapping[str, object] | None:
    text = _read_text(path)
    if "[queryprof]" not in text:
        return None
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
        return {
            name: SETTINGS[name][0][1](value) if name in SETTINGS else value
            for name, value in parser["queryprof"].items()
        }
    except (configparser.Error, ValueError) as error:
        raise SettingsError(f"{path}: [queryprof]: {error}") from error
