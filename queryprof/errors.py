"""The exceptions of queryprof. Their messages are for users.

QueryprofError             base class; the command line prints it and exits with 2
├── SettingsError          a setting in pyproject.toml or setup.cfg, or an argument
├── TraceError             a trace file that cannot be read or written
├── BaselineError          a test suite's baseline that cannot be read or written
├── ProofError             a database whose fixes cannot be measured
├── DriverError            a database driver that is not as expected
└── SessionError           install, uninstall or profile when it is impossible
"""


class QueryprofError(Exception):
    """An error that the user can correct. The message is one line and includes the correction."""


class SettingsError(QueryprofError):
    """An invalid setting or argument."""


class TraceError(QueryprofError):
    """A trace that is missing, damaged, too new, or not a trace."""


class BaselineError(QueryprofError):
    """A baseline that is missing, damaged, too new, or not a baseline."""


class ProofError(QueryprofError):
    """A database that cannot be copied, or statements that cannot be measured on it."""


class DriverError(QueryprofError):
    """A database driver without the expected types or functions. It is not measured."""


class SessionError(QueryprofError):
    """A recording, or its result, was requested when this is impossible."""
