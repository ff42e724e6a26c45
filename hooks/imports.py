"""Attach to a library when the program imports it, or at once if it is already imported.

A finder at the head of sys.meta_path recognizes the names of the hooks' modules, and leaves the
search to other finders. The module's loader is exchanged only while it runs that module.
"""

from __future__ import annotations

import sys
from _frozen_importlib_external import (  # this avoids importing the rest of importlib
    ExtensionFileLoader,
    SourceFileLoader,
    SourcelessFileLoader,
)

from queryprof.core import _core
from queryprof.core.held_signals import came_from_handler, held_signals
from queryprof.hooks.libraries import SQLITE3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Protocol, SupportsIndex

    class Hook(Protocol):
        """A hook that attaches to a library."""

        module: str
        """The hook can attach after this module is imported."""

        def attach(self, module: ModuleType) -> None:
            """Attach everything, or raise an exception and attach nothing."""

        def detach(self) -> None:
            """Restore everything. Does nothing if not attached."""


class ImportHooks:
    """Keeps hooks attached to the libraries that the program imports.

    Args:
        complain: called with one line about a module whose hook failed.
        attached: called after a hook has attached.
    """

    def __init__(
        self,
        hooks: Sequence[Hook],
        complain: Callable[[str], None],
        attached: Callable[[], None] = lambda: None,
    ) -> None:
        self._hooks = list(hooks)
        self._attached = attached
        self._is_attached = False
        self.complain = complain
        self._waiting: dict[str, Hook] = {}
        self.failures: dict[str, str] = {}
        """Why a hook failed, by module."""
        self.counters_off: dict[str, str] = {}
        """Why the counters of an attached module's database are unknown, by module."""

    @property
    def packages(self) -> set[str]:
        """The packages with working or waiting hooks.

        Excludes packages whose hook failed, and packages that were imported without being noticed.
        """
        # imported without being noticed
        missed = {name for name in self._waiting if name in sys.modules}
        modules = {hook.module for hook in self._hooks} - set(self.failures) - missed
        return {package_of(module) for module in modules}

    @property
    def sqlite_versions(self) -> list[str]:
        """The versions of SQLite in the drivers that the program has imported."""
        found = {
            hook.module: str(version)
            for hook in self._hooks
            if hook.module in sys.modules and (version := getattr(hook, "sqlite_version", None))
        }
        if len(found) > 1 and "sqlite3" not in sys.modules:
            found.pop(SQLITE3, None)  # only imported for the counters of another driver
        return list(dict.fromkeys(found.values()))

    def attach(self) -> None:
        """Attach to the imported modules now, and to other modules when they are imported."""
        self._is_attached = True
        self._waiting.clear()
        self.failures.clear()
        self.counters_off.clear()
        for hook in self._hooks:
            self._attach_or_wait(hook)

    def add(self, hook: Hook) -> None:
        """Add a hook. It replaces a hook for the same module."""
        for known in [known for known in self._hooks if known.module == hook.module]:
            self._hooks.remove(known)
            known.detach()
        self.failures.pop(hook.module, None)
        self.counters_off.pop(hook.module, None)
        self._hooks.append(hook)
        self._attach_or_wait(hook)

    def detach(self) -> None:
        """Detach from all modules, in reverse order, and do not attach to further modules."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._is_attached = False
        for hook in reversed(self._hooks):
            hook.detach()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leave the search to later finders (importlib.abc.MetaPathFinder)."""
        hook = self._waiting.get(name)
        if hook is None or not self._is_attached or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = attaching_loader(spec, lambda module: self._attach(hook, module))
                return spec
        return None

    def _attach_or_wait(self, hook: Hook) -> None:
        if not self._is_attached:
            return  # detached in the meantime
        module = sys.modules.get(hook.module)
        if module is None:
            self._waiting[hook.module] = hook
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)
        elif not _call_after_import(hook.module, lambda: self._attach_or_wait(hook)):
            self._attach(hook, module)

    def _attach(self, hook: Hook, module: ModuleType) -> None:
        self._waiting.pop(hook.module, None)
        if not self._is_attached or hook not in self._hooks:
            return  # detached in the meantime
        with held_signals():
            _core.call_untraced(lambda: self._attach_or_complain(hook, module))

    def _attach_or_complain(self, hook: Hook, module: ModuleType) -> None:
        try:
            hook.attach(module)
            reason = getattr(hook, "counters_off", None)
            if reason:
                self.counters_off[hook.module] = reason
            self._attached()
        except Exception as error:
            if came_from_handler(error):
                raise
            self.failures[hook.module] = str(error)
            self.complain(f"{hook.module} is not measured: {error}")


FILE_LOADERS = (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader)
"""Loaders that are created for one module each, and that programs inspect."""

CLASS_OF = object.__dict__["__class__"]


def attaching_loader(spec: ModuleSpec, attach: Callable[[ModuleType], None]) -> Any:
    """Return a loader that runs a module like its spec's loader, and then calls `attach` with the
    module.

    Until then, the loader looks like the original loader.
    """
    loader: Any = spec.loader
    kind: Any = type(loader)
    if kind not in FILE_LOADERS:
        return _ForeignLoader(spec, attach)

    class Attaching(kind):  # type: ignore[misc]
        __slots__ = ()
        __class__ = property(lambda _: kind)
        __hash__ = kind.__hash__

        def __reduce_ex__(self, _protocol: SupportsIndex) -> tuple[Any, ...]:
            import copyreg  # imported late, because few programs use it

            new = getattr(copyreg, "__newobj__")  # noqa: B009 unknown to type checkers
            return (new, (kind,), dict(vars(self)))

        def exec_module(self, module: ModuleType) -> None:
            CLASS_OF.__set__(self, kind)
            self.exec_module(module)  # now the original method
            if self is loader:
                attach(module)

    Attaching.__name__, Attaching.__qualname__ = kind.__name__, kind.__qualname__
    Attaching.__module__ = kind.__module__
    CLASS_OF.__set__(loader, Attaching)
    return loader


class _ForeignLoader:
    """A loader like `Attaching` above, for an original loader that modules may share, or that is
    not Python's.
    """

    __slots__ = ("_attach", "_loader", "_spec")
    _attach: Callable[[ModuleType], None]
    _loader: Any
    _spec: ModuleSpec

    def __init__(self, spec: ModuleSpec, attach: Callable[[ModuleType], None]) -> None:
        object.__setattr__(self, "_spec", spec)
        object.__setattr__(self, "_loader", spec.loader)
        object.__setattr__(self, "_attach", attach)

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._loader, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._loader, name)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return self._loader.__reduce_ex__(protocol)

    def __eq__(self, other: object) -> bool:
        return bool(self._loader == other)

    def __hash__(self) -> int:
        return hash(self._loader)

    def __repr__(self) -> str:
        return repr(self._loader)

    __class__ = property(lambda self: type(self._loader))
    __dict__ = property(lambda self: vars(self._loader))

    def exec_module(self, module: ModuleType) -> None:
        loader: Any = self._loader
        self._spec.loader = loader
        module.__loader__ = loader
        loader.exec_module(module)
        self._attach(module)


def _call_after_import(name: str, attach: Callable[[], None]) -> bool:
    """Call a function when another thread's import of a module ends. Returns False if the module is
    completely imported.

    The hooks cannot attach to a half-imported module. An import of the module here would wait for
    the other thread, which may wait for this thread. Python marks the end of an import in the
    module's spec: `_initializing` (importlib._bootstrap), which its import statement reads as well.
    """
    parts = name.split(".")
    # a package's own import may continue after a submodule's
    for length in range(1, len(parts) + 1):
        spec = getattr(sys.modules.get(".".join(parts[:length])), "__spec__", None)
        if getattr(spec, "_initializing", False) and _call_after_spec(spec, attach):
            return True
    return False


def _call_after_spec(spec: Any, attach: Callable[[], None]) -> bool:
    """Call a function when a spec's import ends. Returns False if the import has ended."""
    kind: Any = type(spec)

    class Importing(kind):  # type: ignore[misc]
        """The spec of a module that is being imported."""

        def __setattr__(self, attribute: str, value: object) -> None:
            kind.__setattr__(self, attribute, value)
            if attribute == "_initializing" and not value:
                self.__class__ = kind
                attach()

    try:
        spec.__class__ = Importing
    except TypeError:  # a spec that is not a Python object
        return False
    if getattr(spec, "_initializing", False):
        return True
    spec.__class__ = kind  # the import has just ended
    return False


def package_of(module: str) -> str:
    """Return the name of a module's package. C modules may have a leading underscore."""
    return module.partition(".")[0].lstrip("_")
