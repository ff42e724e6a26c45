"""queryprof finds the few SQL statements and call sites that hold a Python program back.

    import queryprof

    queryprof.install("app.qprof")           # record from here to the end of the process
    with queryprof.profile("out.qprof") as p:
        ...
    p.report()                               # print the ranked report
    with queryprof.span("checkout"):
        ...

A trace is read with the command `queryprof report`.
"""

from queryprof.api import Recording, install, is_installed, profile, uninstall
from queryprof.core.span import span
from queryprof.errors import QueryprofError, SessionError, SettingsError, TraceError
from queryprof.version import __version__

__all__ = [
    "QueryprofError",
    "Recording",
    "SessionError",
    "SettingsError",
    "TraceError",
    "__version__",
    "install",
    "is_installed",
    "profile",
    "span",
    "uninstall",
]
