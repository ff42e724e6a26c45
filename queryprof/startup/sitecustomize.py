"""Python runs this module at startup under `queryprof run`. The module starts recording, and then
runs the user's sitecustomize.
"""

import os
import sys


def _leave_path() -> None:
    """Remove this directory from sys.path, so that the program's path is unchanged."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


def _record() -> None:
    try:
        try:
            from queryprof.recorder import autoload
        except ModuleNotFoundError:
            # A Python of the same version in another environment can use this package.
            package_parent = os.path.abspath(f"{__file__}/../../..")
            sys.path.append(package_parent)
            try:
                from queryprof.recorder import autoload
            finally:
                sys.path.remove(package_parent)
    except ImportError as error:
        version = ".".join(map(str, sys.version_info[:3]))
        sys.stderr.write(f"queryprof: Python {version} is not recorded: {error}\n")
        return
    autoload.start()


def _run_replaced_sitecustomize() -> None:
    """Run the sitecustomize that Python would import without queryprof."""
    from _frozen_importlib_external import PathFinder  # without the rest of importlib

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec  # late, because it takes as long as everything else

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _leave_path()
    _record()
except KeyboardInterrupt:
    # Ctrl-C before the program begins ends it as without queryprof, not with an error of site.
    import _signal  # type: ignore[import-not-found]

    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    os.kill(os.getpid(), _signal.SIGINT)
    os._exit(128 + _signal.SIGINT)  # the first process of a container cannot end itself by a signal
_run_replaced_sitecustomize()
