"""Start recording when Python starts, if QUERYPROF is set.

    QUERYPROF=1            to queryprof-PROGRAM-PID.qprof in the working directory
    QUERYPROF=directory/   to a file with that name in the directory
    QUERYPROF=path.qprof   to that file. Further processes, and programs that start while the file
                           is being written, use path-PID.qprof
    QUERYPROF=standby      record only when `queryprof attach` requests it
    QUERYPROF=/dev/null    record nothing

`queryprof run` sets QUERYPROF=1 and QUERYPROF_RUNNER. Then the started process,
and every process that uses a database, record to the runner's directory.

Nothing here raises: the program runs as it would without queryprof.
"""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VARIABLE = "QUERYPROF"
FIRST_VARIABLE = "QUERYPROF_FIRST_PID"
"""Set by the first process for its children, so that only one process writes to the path. The value
consists of the first process's id and start (ns since 1970).
"""

RUNNER_VARIABLE = "QUERYPROF_RUNNER"
"""Facts from `queryprof run` for its processes, as written by `Runner.variable`."""

FUNCTIONS_FILE = "functions.prof"
"""File in the runner's directory for the functions' times of the started process."""

WORDS = {"true": "1", "yes": "1", "on": "1", "false": "0", "no": "0", "off": "0"}
"""Other values of QUERYPROF that switch recording on and off."""

OWN_COMMAND = "queryprof"
"""The program that is never recorded: the command itself."""

MAX_PID_DIGITS = 19
"""Maximum number of digits of a process id."""

OPTIONS_WITH_VALUES = ("-W", "-X", "--check-hash-based-pycs")
"""Python's options that consist of two arguments."""

_started = False


def start() -> None:
    """Start recording as set in the environment. Further calls do nothing."""
    global _started
    value = os.environ.get(VARIABLE, "")
    value = WORDS.get(value.lower(), value)
    if _started or value in ("", "0", os.devnull) or running_program() == OWN_COMMAND:
        return
    _started = True
    if value == "standby":
        _call_or_complain(_stand_by)
        return
    if not _names_trace(value):
        _complain(f"QUERYPROF={value} is not 1, standby, DIRECTORY/ or NAME.qprof")
        return
    runner = RunnerFacts.parse(os.environ.get(RUNNER_VARIABLE, "")) if value == "1" else None
    beginning = RecordingStart(value, runner)
    if beginning.is_child:
        _call_or_complain(beginning.at_first_use)
    else:
        beginning()


def _stand_by() -> None:
    from queryprof.recorder.standby import stand_by

    stand_by(RecordingStart("1", None).attach)


def look_for_command() -> None:
    """Look for a `queryprof attach` that wants to record this process."""
    from queryprof.recorder.standby import look_for_command

    look_for_command(RecordingStart("1", None).attach)


class RunnerFacts:
    """The command, such as `queryprof run`, that collects the recordings of processes.

    Attributes:
        pid: its process id.
        directory: the directory of its recordings, with a separator at the end.
        profiles_functions: whether the functions of the started process are profiled.
    """

    def __init__(self, pid: int, directory: str, profiles_functions: bool = False) -> None:
        self.pid, self.directory = pid, directory
        self.profiles_functions = profiles_functions

    @property
    def variable(self) -> str:
        """The value of QUERYPROF_RUNNER."""
        return f"{self.pid}:{'cprofile' if self.profiles_functions else ''}:{self.directory}"

    @classmethod
    def parse(cls, variable: str) -> RunnerFacts | None:
        """Parse the value of QUERYPROF_RUNNER. Returns None if it is invalid."""
        pid, _, rest = variable.partition(":")
        functions, _, directory = rest.partition(":")
        is_valid = pid.isdecimal() and len(pid) <= MAX_PID_DIGITS and os.path.isabs(directory)
        return cls(int(pid), directory, functions == "cprofile") if is_valid else None


class RecordingStart:
    """The start of the recording, with the facts known when Python starts."""

    def __init__(self, value: str, runner: RunnerFacts | None) -> None:
        self._value = value
        self._runner = runner
        self.is_child = runner is not None and runner.pid != os.getppid()
        self._program = program_directory()
        self._directory = _working_directory()
        self._environ = {
            name: os.environ[name] for name in os.environ if name.startswith((VARIABLE, "OTEL_"))
        }
        self._waits = self._has_begun = False
        self._replaces = True  # whether to replace an old trace at the path
        self._owner: object = None

    def at_first_use(self) -> None:
        """Begin when a child imports a measured library. Children that import none are not
        recorded.
        """
        from queryprof.hooks.first_use import FirstUseFinder

        self._waits = True
        # Registered now, so that the program's own exit functions run first.
        atexit.register(self._end_of_process)
        _pass_code_roots_on()
        FirstUseFinder(self).wait()

    def attach(self, runner: str, owner: object) -> bool:
        """Begin recording for a command, until the owner releases the recording. The command
        collects the trace.

        Nothing else changes in the program. Returns False if the program was recorded already.

        Args:
            runner: a value of QUERYPROF_RUNNER (see RunnerFacts.variable).

        Raises:
            Exception: this process cannot be recorded.
        """
        self._runner, self._owner, self.is_child = RunnerFacts.parse(runner), owner, False
        if self._runner is None:
            raise ValueError(f"{runner!r} is not a runner")
        return self._begin()

    def __call__(self) -> None:
        """Begin recording. Raises only exceptions of the program's signal handlers."""
        self._has_begun = True
        _call_or_complain(self._begin)

    def _end_of_process(self) -> None:
        """At the end of a process that waited for the import of a measured library: end its
        recording, or complain if such an import was not noticed.
        """
        session = sys.modules.get("queryprof.recorder.session")
        missed = () if self._has_begun else sorted(filter(_is_imported, _measured_modules()))
        if session is not None:
            session.session.end_of_process()
        elif missed:
            _complain(f"queryprof did not notice the import of {missed[0]}")

    def _begin(self) -> bool:
        from queryprof.core.own_imports import own_imports

        own_imports.program = self._program
        with own_imports():
            from queryprof.core import _core

            if "IS_SUBINTERPRETER" in vars(_core):
                return False  # the main interpreter records
            return bool(_core.call_untraced(self._start))

    def _start(self) -> bool:
        """Begin recording. Returns whether it was off before."""
        from queryprof.collect.output_path import is_null_device
        from queryprof.collect.target import TraceTarget
        from queryprof.core.settings import read_settings
        from queryprof.recorder.session import session

        # The program may leave this directory before it forks.
        self._value = value = _make_absolute(self._value)
        runner = self._runner
        if is_null_device(value):
            return False
        settings = read_settings(self._directory, self._environ)
        self._replaces = not settings.window_ns
        path = self._path()
        if self._directory and self._directory != _working_directory():
            # the program has left this directory since
            settings.roots = (*settings.roots, self._directory)
        is_new = session.start(
            settings,
            target=lambda: TraceTarget(
                path,
                self._path if self._owner is None else None,
                family=runner.directory if runner else _family_path(value),
                even_if_empty=not self.is_child,
                is_collected=runner is not None,
            ),
            ends_at_exit=not self._waits,
            owner=self._owner,
        )
        if is_new and settings.window_ns and runner is None:
            _warn_without_directory(path)
        if not self._waits and self._owner is None:
            _pass_code_roots_on()
        if runner and runner.profiles_functions and not self.is_child:
            from queryprof.hooks import function_profile

            # Only once: a program that replaces this one by exec would overwrite the times.
            os.environ[RUNNER_VARIABLE] = RunnerFacts(runner.pid, runner.directory).variable
            function_profile.start_function_profile(os.path.join(runner.directory, FUNCTIONS_FILE))
        return is_new

    def _path(self) -> str:
        """Return the path of this process's trace."""
        if self._runner is None:
            return _trace_path(self._value, self._replaces)
        from time import monotonic_ns

        return os.path.join(self._runner.directory, f"{os.getpid()}-{monotonic_ns()}.qprof")


def _call_or_complain(begin: Callable[[], object]) -> None:
    try:
        begin()
    except Exception as error:
        held = sys.modules.get("queryprof.core.held_signals")
        if held is not None and held.came_from_handler(error):
            raise
        _complain(error)


def _complain(reason: object) -> None:
    _print_message(f"this process is not recorded: {reason}")


def _warn_without_directory(path: str) -> None:
    """Warn at the start, because a service that records in windows may run for months."""
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        _print_message(f"no directory {directory}: create it before this process ends")


def _print_message(message: str) -> None:
    try:
        sys.stderr.write(f"queryprof: {message}\n")
    except Exception:
        pass  # no stderr to write to


def _is_imported(name: str) -> bool:
    """Return whether a module is imported. A program may put other objects into sys.modules."""
    module = sys.modules.get(name)
    return type(module) is type(sys) and getattr(module, "__spec__", None) is not None


def _measured_modules() -> frozenset[str]:
    from queryprof.hooks.first_use import MEASURED

    return MEASURED


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # the directory was removed


def _pass_code_roots_on() -> None:
    """Pass the program's code directories to children, because spawned children have no script."""
    from queryprof.core.user_code import ROOTS_VARIABLE, script_directory

    known = [root for root in os.environ.get(ROOTS_VARIABLE, "").split(os.pathsep) if root]
    new = [one for one in script_directory() if one not in known]
    if new:
        os.environ[ROOTS_VARIABLE] = os.pathsep.join([*known, *new])


def _trace_path(value: str, replaces: bool = True) -> str:
    """Return the path of this process's trace. Only the first process gets the plain path."""
    pid = os.getpid()
    if _has_trace_per_process(value):
        directory = "" if value == "1" else value
        name = f"queryprof-{running_program()}-{pid}.qprof"
        return os.path.abspath(os.path.join(directory, name))
    from queryprof.collect.output_path import path_with_pid, path_with_process, prepare_output_path
    from queryprof.core.wall_clock import unix_ns

    path = os.path.abspath(value)
    first, _, since_ns = os.environ.setdefault(FIRST_VARIABLE, f"{pid}.{unix_ns()}").partition(".")
    if first != str(pid):
        others, path = path, path_with_process(path)
        if _modified_ns(path) >= int(since_ns or 0):
            return path_with_pid(others)  # another process of this recording had this id
    return prepare_output_path(path, replaces)


def _make_absolute(value: str) -> str:
    """Make a path absolute. The path of a directory keeps its separator."""
    if value == "1":
        return value
    return (
        os.path.join(os.path.abspath(value), "")
        if _has_trace_per_process(value)
        else os.path.abspath(value)
    )


def _has_trace_per_process(value: str) -> bool:
    """Return whether each process has its own trace name."""
    return value == "1" or value.endswith(os.sep) or os.path.isdir(value)


def _names_trace(value: str) -> bool:
    """Return whether a value names a trace or a directory. Another word is a typing mistake."""
    return "." in value or os.sep in value or _has_trace_per_process(value)


def _family_path(value: str) -> str | None:
    return None if _has_trace_per_process(value) else os.path.abspath(value)


def _modified_ns(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return -1


def running_program() -> str:
    """Return the program's name for its trace: the running script or module, without a path."""
    return program_named_in(getattr(sys, "orig_argv", sys.argv))


def program_named_in(arguments: Sequence[str]) -> str:
    """Return the script or module, without a path, that a Python with these arguments runs."""
    option, name = _split_program(arguments)
    return name if option else os.path.splitext(os.path.basename(name))[0] or "python"


def program_directory() -> str:
    """Return the directory that Python puts first in sys.path at startup, or ""."""
    if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return ""
    option, name = _split_program(getattr(sys, "orig_argv", sys.argv))
    try:
        if option or not name:
            return os.getcwd()
        script = os.path.realpath(name)
        return script if os.path.isdir(script) else os.path.dirname(script)
    except OSError:
        return ""  # the working directory is gone


def _split_program(arguments: Sequence[str]) -> tuple[str, str]:
    """Return Python's option (-m or -c; "" for a script), and the name of the module or script."""
    left = iter(arguments[1:])
    for argument in left:
        if argument in OPTIONS_WITH_VALUES:
            next(left, None)
        elif argument == "-m":
            return argument, next(left, "python")
        elif argument == "-c":
            return argument, "python"
        elif not argument.startswith("-"):
            return "", argument
    return "", ""
