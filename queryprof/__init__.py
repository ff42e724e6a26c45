"""queryprof finds the few SQL statements and call sites that make a Python program slow.

    import queryprof

    queryprof.install("app.qprof")           # record from here to the end of the process
    with queryprof.profile("out.qprof") as p:
        ...
    p.report()                               # print the ranked report
    with queryprof.span("checkout"):
        ...

Read a trace with the command `queryprof report`.

PYTEST_DONT_REWRITE: pytest must not rewrite modules that a recorded run has already imported.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.core.span import span
    from queryprof.errors import (
        QueryprofError,
        SessionError,
        SettingsError,
        TraceError,
    )
    from queryprof.hooks.event_loops.lag import loop_lag
    from queryprof.notebook.extension import (
        load_ipython_extension as load_ipython_extension,
    )
    from queryprof.notebook.extension import (
        unload_ipython_extension as unload_ipython_extension,
    )
    from queryprof.recorder.api import install, instrument, is_installed, profile, uninstall
    from queryprof.recorder.recording import Recording
    from queryprof.testing.at_most import at_most
    from queryprof.testing.case import TestCase
    from queryprof.testing.growth import check_growth
    from queryprof.version import __version__
    from queryprof.web.asgi_middleware import AsgiMiddleware
    from queryprof.web.badge import Badge
    from queryprof.web.wsgi_middleware import WsgiMiddleware

__all__ = [
    "AsgiMiddleware",
    "Badge",
    "QueryprofError",
    "Recording",
    "SessionError",
    "SettingsError",
    "TestCase",
    "TraceError",
    "WsgiMiddleware",
    "__version__",
    "at_most",
    "check_growth",
    "install",
    "instrument",
    "is_installed",
    "loop_lag",
    "profile",
    "span",
    "uninstall",
]

_HOMES = {
    "queryprof.recorder.api": (
        "install",
        "instrument",
        "is_installed",
        "profile",
        "uninstall",
    ),
    "queryprof.web.badge": ("Badge",),
    "queryprof.recorder.recording": ("Recording",),
    "queryprof.core.span": ("span",),
    "queryprof.hooks.event_loops.lag": ("loop_lag",),
    "queryprof.web.asgi_middleware": ("AsgiMiddleware",),
    "queryprof.web.wsgi_middleware": ("WsgiMiddleware",),
    "queryprof.errors": (
        "QueryprofError",
        "SessionError",
        "SettingsError",
        "TraceError",
    ),
    "queryprof.notebook.extension": ("load_ipython_extension", "unload_ipython_extension"),
    "queryprof.testing.at_most": ("at_most",),
    "queryprof.testing.case": ("TestCase",),
    "queryprof.testing.growth": ("check_growth",),
    "queryprof.version": ("__version__",),
}


def __getattr__(name: str) -> object:
    """Import a public name on first use.

    pytest imports this package for its plugin in every run, with or without a recording.
    """
    for module, names in _HOMES.items():
        if name in names:
            # not importlib.import_module(), whose import takes as long as three of our modules
            value: object = getattr(__import__(module, fromlist=(name,)), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
