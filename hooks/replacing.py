"""Measure functions of other libraries' classes and modules, and restore them."""

from __future__ import annotations

from queryprof.core import _core


class Replacements:
    """The replaced attributes, and the functions measured in place."""

    def __init__(self) -> None:
        self._undo: list[tuple[object, str, tuple[object, ...], object]] = []

    def measure(self, owner: object, name: str, wrapper: object) -> None:
        """Route the calls of a function through a wrapper, which the core has made around the
        function.

        The function stays in place if the core can do that (queryprof/core/wrappers/in_place.h).
        Otherwise the wrapper becomes the owner's attribute.
        """
        inner = wrapper.__func__ if isinstance(wrapper, classmethod) else wrapper
        if _core.measure_in_place(inner, name):
            self._undo.append((None, name, (inner,), None))
        else:
            self.replace(owner, name, wrapper)

    def replace(self, owner: object, name: str, value: object) -> None:
        """Replace an attribute, which its owner may have inherited."""
        own = vars(owner)
        self._undo.append((owner, name, (own[name],) if name in own else (), value))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Restore everything in reverse order, except attributes replaced by the program since."""
        while self._undo:
            owner, name, before, value = self._undo.pop()
            if owner is None:
                _core.end_measuring_in_place(*before)
            elif vars(owner).get(name) is not value:
                continue  # the program's patch may still be there, or has just ended
            elif before:
                setattr(owner, name, before[0])
            else:
                delattr(owner, name)
