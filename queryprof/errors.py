"""What can go wrong, as classes whose messages are for people.

QueryprofError             anything below; the command line prints it and exits with 2
├── SettingsError          a setting in pyproject.toml or setup.cfg, or an argument
├── TraceError             a trace file that cannot be read or written
├── BaselineError          a test suite's baseline that cannot be read or written
├── DriverError            a database driver that is not as it is known
└── SessionError           install, uninstall or profile at a time when it cannot be
"""


class QueryprofError(Exception):
    """An error that the person can do something about; the message is one line and says what."""


class SettingsError(QueryprofError):
    """A setting or argument that makes no sense."""


class TraceError(QueryprofError):
    """A trace that is missing, damaged, too new, or not a trace."""


class BaselineError(QueryprofError):
    """A baseline that is missing, damaged, too new, or no baseline."""


class DriverError(QueryprofError):
    """A database driver that has not what it should have: it is not measured."""


class SessionError(QueryprofError):
    """Recording was asked for, or asked of, at a time when that cannot be."""
