"""What the program replaces in a class that queryprof has changed stays as the program wants it."""

from __future__ import annotations

from queryprof.hooks.replacing import Replacements


class Parent:
    def inherited(self) -> str:
        return "bare"


class Owner(Parent):
    def own(self) -> str:
        return "bare"


def ours(_: object) -> str:
    return "recorded"


def theirs(_: object) -> str:
    return "patched"


def test_what_nobody_else_replaces_is_restored() -> None:
    before, replacements = dict(vars(Owner)), Replacements()
    for name in ("own", "inherited"):
        replacements.replace(Owner, name, ours)
    assert (Owner().own(), Owner().inherited()) == ("recorded", "recorded")
    replacements.undo()
    assert dict(vars(Owner)) == before


def test_a_patch_that_begins_during_the_recording_stays() -> None:
    before, replacements = Owner.own, Replacements()
    replacements.replace(Owner, "own", ours)
    Owner.own = theirs  # type: ignore[method-assign]
    replacements.undo()
    assert Owner().own() == "patched"
    Owner.own = before  # type: ignore[method-assign]


def test_a_patch_that_ends_during_the_recording_stays_ended() -> None:
    before, replacements = Owner.own, Replacements()
    Owner.own = theirs  # type: ignore[method-assign]
    replacements.replace(Owner, "own", ours)
    Owner.own = before  # type: ignore[method-assign]
    replacements.undo()
    assert Owner().own() == "bare"
