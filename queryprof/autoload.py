"""Starts recording when Python starts, if the environment has QUERYPROF.

    QUERYPROF=1            to queryprof-PROGRAM-PID.qprof in the working directory
    QUERYPROF=directory/   to a file of that name in that directory
    QUERYPROF=path.qprof   to that file; further processes, and programs that start while it is
                           written to, to path-PID.qprof
    QUERYPROF=standby      nothing is recorded until `queryprof attach` does it
    QUERYPROF=/dev/null    nothing is recorded

Below `queryprof run`, which sets QUERYPROF=1 and QUERYPROF_RUNNER, the recordings go to the
runner's directory: that of the process that it starts, and those of processes that use a database.

It never raises: a program runs as it would without.
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
"""Set by the first process for its children, so that one process alone writes to the path: its id,
and its start in ns since 1970.
"""

RUNNER_VARIABLE = "QUERYPROF_RUNNER"
"""What `queryprof run` lets its processes know, as `Runner.variable` writes it."""

FUNCTIONS_FILE = "functions.prof"
"""The file in the runner's directory for the functions' times of the process that it starts."""

WORDS = {"true": "1", "yes": "1", "on": "1", "false": "0", "no": "0", "off": "0"}
"""What else switches on and off."""

OURSELVES = "queryprof"
"""The program that is never recorded: the command."""

LONGEST_PID = 19
"""Digits."""

OPTIONS_WITH_VALUES = ("-W", "-X", "--check-hash-based-pycs")
"""The options of Python that are two arguments."""

_started = False


def start() -> None:
    """Starts recording as set in the environment; a second call does nothing."""
    global _started
    value = os.environ.get(VARIABLE, "")
    value = WORDS.get(value.lower(), value)
    if _started or value in ("", "0", os.devnull) or running_program() == OURSELVES:
        return
    _started = True
    if value == "standby":
        _or_complain(_stand_by)
        return
    runner = Runner.of(os.environ.get(RUNNER_VARIABLE, "")) if value == "1" else None
    beginning = Beginning(value, runner)
    if beginning.is_child:
        _or_complain(beginning.at_first_use)
    else:
        beginning()


def _stand_by() -> None:
    from queryprof.attachment.standby import stand_by

    stand_by(Beginning("1", None).attach)


def look_for_command() -> None:
    """Looks for a `queryprof attach` that wants to record this process."""
    from queryprof.attachment.standby import look_for_command

    look_for_command(Beginning("1", None).attach)


class Runner:
    """A `queryprof run`: its process id, the directory of its recordings with a separator at its
    end, and whether the functions of the process that it starts are profiled.
    """

    def __init__(self, pid: int, directory: str, profiles_functions: bool = False) -> None:
        self.pid, self.directory = pid, directory
        self.profiles_functions = profiles_functions

    @property
    def variable(self) -> str:
        """The value of QUERYPROF_RUNNER."""
        return f"{self.pid}:{'cprofile' if self.profiles_functions else ''}:{self.directory}"

    @classmethod
    def of(cls, variable: str) -> Runner | None:
        """Reads the value of QUERYPROF_RUNNER; None: it is none."""
        pid, _, rest = variable.partition(":")
        functions, _, directory = rest.partition(":")
        is_valid = pid.isdecimal() and len(pid) <= LONGEST_PID and os.path.isabs(directory)
        return cls(int(pid), directory, functions == "cprofile") if is_valid else None


class Beginning:
    """The beginning of the recording, with what is known when Python starts."""

    def __init__(self, value: str, runner: Runner | None) -> None:
        self._value = value
        self._runner = runner
        self.is_child = runner is not None and runner.pid != os.getppid()
        self._program = program_directory()
        self._directory = _working_directory()
        self._environ = {
            name: os.environ[name] for name in os.environ if name.startswith((VARIABLE, "OTEL_"))
        }
        self._waits = self._has_begun = False
        self._replaces = True  # a trace at its path
        self._owner: object = None

    def at_first_use(self) -> None:
        """Lets a child begin when it imports something that is measured; others never do."""
        from queryprof.hooks.first_use import FirstUse

        self._waits = True
        # As if it began now: what the program registers comes first at its end.
        atexit.register(self._end_of_process)
        _hand_on_roots()
        FirstUse(self).wait()

    def attach(self, runner: str, owner: object) -> bool:
        """Begins for a command, which collects the trace, until its owner releases it; the program
        is as it was otherwise. False: it was recorded already.

        Args:
            runner: as QUERYPROF_RUNNER.

        Raises:
            Exception: this process cannot be recorded.
        """
        self._runner, self._owner, self.is_child = Runner.of(runner), owner, False
        if self._runner is None:
            raise ValueError(f"{runner!r} is no runner")
        return self._begin()

    def __call__(self) -> None:
        """Begins; it raises nothing but what the program's signal handlers do."""
        self._has_begun = True
        _or_complain(self._begin)

    def _end_of_process(self) -> None:
        """Ends the recording of a process that has waited for its first use."""
        session = sys.modules.get("queryprof.session")
        missed = () if self._has_begun else sorted(filter(_is_imported, _measured()))
        if session is not None:
            session.session.end_of_process()
        elif missed:
            _complain(f"{missed[0]} was imported past the finders of its start")

    def _begin(self) -> bool:
        from queryprof.core.own_imports import own_imports

        own_imports.program = self._program
        with own_imports():
            from queryprof.core import _core

            if "IS_SUBINTERPRETER" in vars(_core):
                return False  # the main interpreter records
            return bool(_core.untraced(self._start))

    def _start(self) -> bool:
        """Begins; whether it was off before."""
        from queryprof.collect.output_path import is_null
        from queryprof.collect.target import Target
        from queryprof.core.settings import read_settings
        from queryprof.session import session

        # The program may leave this directory before it forks.
        self._value = value = _absolute(self._value)
        runner = self._runner
        if is_null(value):
            return False
        settings = read_settings(self._directory, self._environ)
        self._replaces = not settings.window_ns
        path = self._path()
        if self._directory and self._directory != _working_directory():
            settings.roots = (*settings.roots, self._directory)  # the program has left it since
        is_new = session.start(
            settings,
            target=lambda: Target(
                path,
                self._path if self._owner is None else None,
                family=runner.directory if runner else _family(value),
                even_if_empty=not self.is_child,
                is_collected=runner is not None,
            ),
            ends_at_exit=not self._waits,
            owner=self._owner,
        )
        if not self._waits and self._owner is None:
            _hand_on_roots()
        if runner and runner.profiles_functions and not self.is_child:
            from queryprof.hooks import function_profile

            # Once: a program that this one becomes by exec would replace its times.
            os.environ[RUNNER_VARIABLE] = Runner(runner.pid, runner.directory).variable
            function_profile.start(os.path.join(runner.directory, FUNCTIONS_FILE))
        return is_new

    def _path(self) -> str:
        """The trace of this process."""
        if self._runner is None:
            return _path(self._value, self._replaces)
        from time import monotonic_ns

        return os.path.join(self._runner.directory, f"{os.getpid()}-{monotonic_ns()}.qprof")


def _or_complain(begin: Callable[[], object]) -> None:
    try:
        begin()
    except Exception as error:
        held = sys.modules.get("queryprof.core.held_signals")
        if held is not None and held.is_of_handler(error):
            raise
        _complain(error)


def _complain(reason: object) -> None:
    try:
        sys.stderr.write(f"queryprof: this process is not recorded: {reason}\n")
    except Exception:
        pass  # no stderr to write to


def _is_imported(name: str) -> bool:
    """Whether a module was imported, and is not another object that the program has put there."""
    module = sys.modules.get(name)
    return type(module) is type(sys) and getattr(module, "__spec__", None) is not None


def _measured() -> frozenset[str]:
    from queryprof.hooks.first_use import MEASURED

    return MEASURED


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # it is gone


def _hand_on_roots() -> None:
    """Lets the children know the program's code: one that multiprocessing spawns has no script."""
    from queryprof.core.user_code import ROOTS_VARIABLE, script_directory

    known = [root for root in os.environ.get(ROOTS_VARIABLE, "").split(os.pathsep) if root]
    new = [one for one in script_directory() if one not in known]
    if new:
        os.environ[ROOTS_VARIABLE] = os.pathsep.join([*known, *new])


def _path(value: str, replaces: bool = True) -> str:
    """The trace of this process. The first process gets the plain path, others their own."""
    pid = os.getpid()
    if _is_directory(value):
        directory = "" if value == "1" else value
        name = f"queryprof-{running_program()}-{pid}.qprof"
        return os.path.abspath(os.path.join(directory, name))
    from queryprof.collect.output_path import make_room, path_with_pid, with_process
    from queryprof.core.wall_clock import unix_ns

    path = os.path.abspath(value)
    first, _, since_ns = os.environ.setdefault(FIRST_VARIABLE, f"{pid}.{unix_ns()}").partition(".")
    if first != str(pid):
        others, path = path, with_process(path)
        if _changed_ns(path) >= int(since_ns or 0):
            return path_with_pid(others)  # another process of this recording had this id
    return make_room(path, replaces)


def _absolute(value: str) -> str:
    """A path from the root, which stays one of a directory."""
    if value == "1":
        return value
    return (
        os.path.join(os.path.abspath(value), "") if _is_directory(value) else os.path.abspath(value)
    )


def _is_directory(value: str) -> bool:
    """Whether each process has a trace of its own name."""
    return value == "1" or value.endswith(os.sep) or os.path.isdir(value)


def _family(value: str) -> str | None:
    return None if _is_directory(value) else os.path.abspath(value)


def _changed_ns(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return -1


def running_program() -> str:
    """The name for the running program's trace: its script or module, without a path."""
    return program_named_in(getattr(sys, "orig_argv", sys.argv))


def program_named_in(arguments: Sequence[str]) -> str:
    """The script or module, without a path, that a Python with these arguments runs."""
    option, name = _program(arguments)
    return name if option else os.path.splitext(os.path.basename(name))[0] or "python"


def program_directory() -> str:
    """The directory that Python puts before all others in sys.path when the program begins; "":
    none.
    """
    if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return ""
    option, name = _program(getattr(sys, "orig_argv", sys.argv))
    try:
        if option or not name:
            return os.getcwd()
        script = os.path.realpath(name)
        return script if os.path.isdir(script) else os.path.dirname(script)
    except OSError:
        return ""  # a working directory that is gone


def _program(arguments: Sequence[str]) -> tuple[str, str]:
    """The option of Python with what it runs ("": it is a script), and the name
    of that.
    """
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
