"""Attaches to SQLAlchemy's object mapper where it loads a relationship when an attribute is read: the
statements of such a load are labelled with the class and the attribute.

Nothing else of SQLAlchemy needs a hook: its statements reach the database through a driver.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.errors import DriverError
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


LOADERS = ("LazyLoader", "_LazyLoader")
"""The name of the class: until 2.0, and from 2.1 on."""


class LazyLoads:
    """The labelling of lazy loads."""

    module = "sqlalchemy.orm.strategies"

    def __init__(self, module: str) -> None:
        self.module = module
        self._replaced = Replacements()

    def attach(self, strategies: ModuleType) -> None:
        """Replaces the method that loads.

        Raises:
            DriverError: this version has none.
        """
        names = [name for name in LOADERS if hasattr(strategies, name)]
        loader = getattr(strategies, names[0]) if names else None
        if loader is None or "_emit_lazyload" not in vars(loader):
            raise DriverError("lazy loads are not named: SQLAlchemy is too old, or too new")
        runner = _core.label_runner(loader.__dict__["_emit_lazyload"], describe)
        self._replaced.set(loader, "_emit_lazyload", runner)

    def detach(self) -> None:
        """Puts it back."""
        self._replaced.undo()


def describe(loader: Any, *_args: object, **_options: object) -> str:
    """The label of a loader's statements."""
    return f"lazy load of {loader.parent.class_.__name__}.{loader.key}"
