"""Replaces attributes of other libraries' classes and modules, and puts them back."""

from __future__ import annotations


class Replacements:
    """The replaced attributes."""

    def __init__(self) -> None:
        self._undo: list[tuple[object, str, tuple[object, ...]]] = []

    def set(self, owner: object, name: str, value: object) -> None:
        """Replaces an attribute, which its owner may have inherited."""
        own = vars(owner)
        self._undo.append((owner, name, (own[name],) if name in own else ()))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Puts everything back, in the reverse order."""
        while self._undo:
            owner, name, before = self._undo.pop()
            if before:
                setattr(owner, name, before[0])
            else:
                delattr(owner, name)
