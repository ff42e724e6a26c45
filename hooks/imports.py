"""Attaches to a library when the program imports it, or at once if that is done.

A finder at the head of sys.meta_path recognizes the names of the hooks' modules, and leaves the
finding to the other finders. The module's loader is exchanged only while it runs that module.
"""

from __future__ import annotations

import sys
from _frozen_importlib_external import (  # without the rest of importlib
    ExtensionFileLoader,
    SourceFileLoader,
    SourcelessFileLoader,
)

from queryprof.core import _core
from queryprof.core.held_signals import held_signals, is_of_handler
from queryprof.hooks.libraries import SQLITE3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Protocol, SupportsIndex

    class Hook(Protocol):
        """Something that attaches to a library."""

        module: str
        """The module that must be imported first."""

        def attach(self, module: ModuleType) -> None:
            """Attaches everything, or raises an exception and attaches nothing."""

        def detach(self) -> None:
            """Puts everything back; does nothing when it is not attached."""


class ImportHooks:
    """Keeps hooks attached to those libraries that the program imports.

    Args:
        complain: called with one line about a module that could not be attached to.
        attached: called when one is attached to.
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
        """By module: why it could not be attached to."""
        self.counters_off: dict[str, str] = {}
        """By module that is attached to: why the counters of its database are unknown."""

    @property
    def packages(self) -> set[str]:
        """The packages that have hooks, or will have, without those whose hook has failed, or that
        were imported past them.
        """
        missed = {name for name in self._waiting if name in sys.modules}  # it saw no import of them
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
            found.pop(SQLITE3, None)  # it was imported for the counters of another one
        return list(dict.fromkeys(found.values()))

    def attach(self) -> None:
        """Attaches to the imported modules, and to the others when they are imported."""
        self._is_attached = True
        self._waiting.clear()
        self.failures.clear()
        self.counters_off.clear()
        for hook in self._hooks:
            self._attach_or_wait(hook)

    def add(self, hook: Hook) -> None:
        """Add a hook, which takes the place of one for the same module."""
        for known in [known for known in self._hooks if known.module == hook.module]:
            self._hooks.remove(known)
            known.detach()
        self.failures.pop(hook.module, None)
        self.counters_off.pop(hook.module, None)
        self._hooks.append(hook)
        self._attach_or_wait(hook)

    def detach(self) -> None:
        """Detaches from all modules, in the reverse order, and attaches to no further ones."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._is_attached = False
        for hook in reversed(self._hooks):
            hook.detach()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leaves the finding to those after it (importlib.abc.MetaPathFinder)."""
        hook = self._waiting.get(name)
        if hook is None or not self._is_attached or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = attaching(spec, lambda module: self._attach(hook, module))
                return spec
        return None

    def _attach_or_wait(self, hook: Hook) -> None:
        if not self._is_attached:
            return  # detached in between
        module = sys.modules.get(hook.module)
        if module is None:
            self._waiting[hook.module] = hook
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)
        elif not _when_imported(hook.module, lambda: self._attach_or_wait(hook)):
            self._attach(hook, module)

    def _attach(self, hook: Hook, module: ModuleType) -> None:
        self._waiting.pop(hook.module, None)
        if not self._is_attached or hook not in self._hooks:
            return  # detached in between
        with held_signals():
            _core.untraced(lambda: self._attach_or_complain(hook, module))

    def _attach_or_complain(self, hook: Hook, module: ModuleType) -> None:
        try:
            hook.attach(module)
            reason = getattr(hook, "counters_off", None)
            if reason:
                self.counters_off[hook.module] = reason
            self._attached()
        except Exception as error:
            if is_of_handler(error):
                raise
            self.failures[hook.module] = str(error)
            self.complain(f"{hook.module} is not measured: {error}")


FILE_LOADERS = (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader)
"""Loaders that are made for one module, and looked at by programs."""

CLASS_OF = object.__dict__["__class__"]


def attaching(spec: ModuleSpec, attach: Callable[[ModuleType], None]) -> Any:
    """A loader that runs a module as its spec's own does, and has a function called with it
    afterwards. Until then it passes for that.
    """
    loader: Any = spec.loader
    kind: Any = type(loader)
    if kind not in FILE_LOADERS:
        return _Loader(spec, attach)

    class Attaching(kind):  # type: ignore[misc]
        __slots__ = ()
        __class__ = property(lambda _: kind)
        __hash__ = kind.__hash__

        def __reduce_ex__(self, _protocol: SupportsIndex) -> tuple[Any, ...]:
            import copyreg  # only here: few programs have it

            new = getattr(copyreg, "__newobj__")  # noqa: B009 unknown to type checkers
            return (new, (kind,), dict(vars(self)))

        def exec_module(self, module: ModuleType) -> None:
            CLASS_OF.__set__(self, kind)
            self.exec_module(module)  # as it is now
            if self is loader:
                attach(module)

    Attaching.__name__, Attaching.__qualname__ = kind.__name__, kind.__qualname__
    Attaching.__module__ = kind.__module__
    CLASS_OF.__set__(loader, Attaching)
    return loader


class _Loader:
    """The same of a loader that may be shared by modules, or is none of Python's own."""

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


def _when_imported(name: str, attach: Callable[[], None]) -> bool:
    """Has a function called at the end of a module's import, which another thread is at; False: it
    is imported.

    Half of a module cannot be attached to, and to import anything of it here would wait for that
    thread, which may wait for this one. Python notes the end in the module's spec: `_initializing`
    (importlib._bootstrap), which its import statement reads, too.
    """
    parts = name.split(".")
    for length in range(1, len(parts) + 1):  # a package's own import goes on after a module of it
        spec = getattr(sys.modules.get(".".join(parts[:length])), "__spec__", None)
        if getattr(spec, "_initializing", False) and _tells_end(spec, attach):
            return True
    return False


def _tells_end(spec: Any, attach: Callable[[], None]) -> bool:
    """Has a function called when a spec's import ends; False: it has ended."""
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
    except TypeError:  # a spec that is no object of Python's
        return False
    if getattr(spec, "_initializing", False):
        return True
    spec.__class__ = kind  # it has ended just now
    return False


def package_of(module: str) -> str:
    """The name of a module's package, whose C module may have an underscore before it."""
    return module.partition(".")[0].lstrip("_")
