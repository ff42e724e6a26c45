"""Documents of dataclasses: made of objects with the same attributes, and written as JSON."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from queryprof.report.inert import json_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed import DataclassInstance

    Made = TypeVar("Made", bound=DataclassInstance)


def made(kind: type[Made], source: object, **given: object) -> Made:
    """A dataclass made of an object's attributes of the same names, and of given values."""
    names = [field.name for field in fields(kind)]
    return kind(**{n: getattr(source, n) for n in names if n not in given}, **given)


def all_made(kind: type[Made], sources: Iterable[object]) -> tuple[Made, ...]:
    """The same for each source."""
    return tuple([made(kind, source) for source in sources])


def document_text(document: object, indent: int) -> str:
    """A document as JSON text."""
    return json_text(_plain(document), indent=indent)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value
