"""Settings: `[tool.queryprof]` of pyproject.toml or `[queryprof]` of setup.cfg, in the working
directory.

    roots = ["src", "/opt/app"]   further directories whose code is the program's own
    call_path_frames = 6          frames of the program's own code in a call path, 1 to 8
    parameters = false            keep SQL texts and bound parameters of the slowest executions
    plans = true                  ask SQLite for the plan of each new statement
    stall_ms = 50                 a step of an event loop that takes longer is a stall
    heartbeat_ms = 100            how often it is looked at how late an event loop is
"""

from __future__ import annotations

import os

from queryprof.core.user_code import working_directory
from queryprof.errors import SettingsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ROOTS_VARIABLE = "QUERYPROF_ROOTS"
PARAMETERS_VARIABLE = "QUERYPROF_PARAMETERS"
STALL_VARIABLE = "QUERYPROF_STALL_MS"
MAXIMUM_CALL_PATH_FRAMES = 8
SETTINGS = frozenset(
    {"roots", "call_path_frames", "parameters", "plans", "stall_ms", "heartbeat_ms"}
)
DEFAULT_STALL_MS = 50.0
DEFAULT_HEARTBEAT_MS = 100.0
MINIMUM_MS = 1.0
MAXIMUM_MS = 3_600_000.0


class Settings:
    """What a person may choose.

    Attributes:
        roots: absolute directories whose code is the program's own, besides the working
            directory and the script's.
        call_path_frames: how many frames of the program's own code a call path holds.
        parameters: whether SQL texts and parameters of the slowest executions are kept.
        plans: whether SQLite is asked for the plan of each new statement.
        stall_ms: how long a step of an event loop may take before it is a stall.
        heartbeat_ms: how often it is looked at how late an event loop is.
    """

    __slots__ = ("call_path_frames", "heartbeat_ms", "parameters", "plans", "roots", "stall_ms")

    def __init__(
        self,
        roots: tuple[str, ...] = (),
        call_path_frames: int = 6,
        parameters: bool = False,
        plans: bool = True,
        stall_ms: float = DEFAULT_STALL_MS,
        heartbeat_ms: float = DEFAULT_HEARTBEAT_MS,
    ) -> None:
        self.roots = tuple(os.path.abspath(root) for root in roots)
        self.call_path_frames = call_path_frames
        self.parameters = parameters
        self.plans = plans
        self.stall_ms = stall_ms
        self.heartbeat_ms = heartbeat_ms


def read_settings(
    directory: str | None = None, environ: Mapping[str, str] = os.environ
) -> Settings:
    """The settings that hold in a directory (the working directory), with the environment's.

    Raises:
        SettingsError: a file cannot be read, or says something that makes no sense.
    """
    directory = directory or working_directory()
    table = _pyproject(os.path.join(directory, "pyproject.toml"))
    if table is None:
        table = _setup_cfg(os.path.join(directory, "setup.cfg"))
    settings = _from_table(table or {}, directory)
    extra = environ.get(ROOTS_VARIABLE, "")
    settings.roots += tuple(root for root in extra.split(os.pathsep) if root)
    settings.parameters = settings.parameters or environ.get(PARAMETERS_VARIABLE) == "1"
    if STALL_VARIABLE in environ:
        settings.stall_ms = _milliseconds("stall_ms", environ[STALL_VARIABLE])
    return settings


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from error


def _pyproject(path: str) -> Mapping[str, object] | None:
    text = _text(path)
    if "tool.queryprof" not in text:  # spares the program the import of a TOML parser
        return None
    import tomllib

    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: is no valid TOML: {error}") from error
    table = tool.get("queryprof") if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else None


def _setup_cfg(path: str) -> Mapping[str, object] | None:
    text = _text(path)
    if "[queryprof]" not in text:
        return None
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
        section = parser["queryprof"]
        table: dict[str, object] = dict(section)
        if "roots" in section:
            table["roots"] = section["roots"].split()
        if "call_path_frames" in section:
            table["call_path_frames"] = section.getint("call_path_frames")
        for name in ("stall_ms", "heartbeat_ms"):
            if name in section:
                table[name] = section.getfloat(name)
        for name in ("parameters", "plans"):
            if name in section:
                table[name] = section.getboolean(name)
    except (configparser.Error, ValueError) as error:
        raise SettingsError(f"{path}: [queryprof]: {error}") from error
    return table


def _from_table(table: Mapping[str, object], directory: str) -> Settings:
    unknown = sorted(set(table) - SETTINGS)
    if unknown:
        raise SettingsError(f"queryprof has no setting {unknown[0]!r} (in {directory})")
    roots = table.get("roots", [])
    frames = table.get("call_path_frames", 6)
    if not isinstance(roots, list) or not all(isinstance(root, str) for root in roots):
        raise SettingsError(f"roots must be a list of directories, not {roots!r}")
    if type(frames) is not int or not 1 <= frames <= MAXIMUM_CALL_PATH_FRAMES:
        raise SettingsError(
            f"call_path_frames must be 1 to {MAXIMUM_CALL_PATH_FRAMES}, not {frames!r}"
        )
    return Settings(
        tuple(os.path.join(directory, root) for root in roots),
        frames,
        _truth("parameters", table.get("parameters", False)),
        _truth("plans", table.get("plans", True)),
        _milliseconds("stall_ms", table.get("stall_ms", DEFAULT_STALL_MS)),
        _milliseconds("heartbeat_ms", table.get("heartbeat_ms", DEFAULT_HEARTBEAT_MS)),
    )


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SettingsError(f"{name} must be true or false, not {value!r}")
    return value


def _milliseconds(name: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = 0.0
    if isinstance(value, bool) or not MINIMUM_MS <= number <= MAXIMUM_MS:
        raise SettingsError(f"{name} must be {MINIMUM_MS:g} to {MAXIMUM_MS:g}, not {value!r}")
    return number
