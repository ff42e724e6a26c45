"""Stages' dataclasses as JSON: each as it is, or in the shape that a document gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, singledispatch
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, get_type_hints

from queryprof.report.inert import json_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Made = TypeVar("Made", bound=DataclassInstance)

Kind = TypeVar("Kind")

SHAPES: dict[type, type] = {}
"""By a stage's type: the document's type that stands for it."""


@dataclass_transform(frozen_default=True)
def shape_of(source: type, without: tuple[str, ...] = ()) -> Callable[[type[Kind]], type[Kind]]:
    """Makes a class the shape of a stage's dataclass in a document: with its fields, but those
    left out, in their types, but for those that the class states itself.
    """

    def shape(kind: type[Kind]) -> type[Kind]:
        hints = get_type_hints(source)
        inherited = {f.name: hints[f.name] for f in fields(source) if f.name not in without}
        kind.__annotations__ = {**inherited, **kind.__annotations__}
        SHAPES[source] = made_kind = dataclass(frozen=True, slots=True)(kind)
        return made_kind

    return shape


def made(kind: type[Made], source: object, **given: object) -> Made:
    """A dataclass made of an object's attributes of the same names, and of given values."""
    names = [field.name for field in fields(kind)]
    return kind(**{n: getattr(source, n) for n in names if n not in given}, **given)


def document_text(document: object, indent: int) -> str:
    """A document as JSON text."""
    return json_text(plain(document), indent=indent)


@singledispatch
def plain(value: Any) -> Any:
    """A value as JSON has it. Types whose shape takes more than other names register theirs."""
    kind: type = type(value)
    return {n: plain(getattr(value, n)) for n in _names(kind)} if is_dataclass(kind) else value


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(SHAPES.get(kind, kind)))


@plain.register
def _(value: tuple) -> list[Any]:  # type: ignore[type-arg]  # singledispatch takes plain classes
    return [plain(each) for each in value]


@plain.register(Mapping)
def _(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): plain(each) for name, each in value.items()}
