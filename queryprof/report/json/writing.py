"""Write dataclasses as JSON, unchanged or in the shape that a document defines.

Each type has its own writer function, created when the type first occurs: a large report has
millions of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, singledispatch
from json import dumps
from json.encoder import encode_basestring_ascii
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Made = TypeVar("Made", bound=DataclassInstance)

Kind = TypeVar("Kind")

SHAPES: dict[type, type] = {}
"""The document's class for each class of the analysis or the model."""


@dataclass_transform(frozen_default=True)
def document_shape_of(source: type) -> Callable[[type[Kind]], type[Kind]]:
    """Decorate a class that defines how objects of `source` appear in the document: only with the
    fields of this class.
    """

    def shape(kind: type[Kind]) -> type[Kind]:
        SHAPES[source] = made_kind = dataclass(frozen=True, slots=True)(kind)
        return made_kind

    return shape


def build_from_attributes(kind: type[Made], source: object, **given: object) -> Made:
    """Build a dataclass from the object's attributes of the same names and from given values."""
    names, take = _field_names_and_getter(kind, tuple(given))
    return kind(**dict(zip(names, take(source), strict=True)), **given)


@cache
def _field_names_and_getter(
    kind: type, given: tuple[str, ...]
) -> tuple[tuple[str, ...], Callable[[object], Any]]:
    names = tuple(field.name for field in fields(kind) if field.name not in given)
    return names, _attributes_getter(names)


def _attributes_getter(names: tuple[str, ...]) -> Callable[[object], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda source: tuple(getattr(source, name) for name in names)


@singledispatch
def to_document_value(value: Any) -> Any:
    """Convert a value for a document. A type registers a function if selecting its fields is not
    enough.
    """
    return value


def document_pieces(document: DataclassInstance) -> Iterator[str]:
    """Yield a document as JSON text: one line per field, and per element of a list."""
    yield from _json_pieces(
        {name: getattr(document, name) for name in _field_names(type(document))}
    )
    yield "\n"


def _json_pieces(value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        separator = "{"
        for name, each in value.items():
            yield f"{separator}{_str_to_json(str(name))}: "
            yield from _json_pieces(each)
            separator = ",\n"
        yield "}"
    elif type(value) is tuple and value:
        separator = "["
        for each in value:
            yield separator + to_json(each)
            separator = ",\n"
        yield "]"
    else:
        yield to_json(value)


def to_json(value: Any) -> str:
    """Return a value as exact ASCII JSON without control characters."""
    return WRITERS[type(value)](value)


class _WritersByType(dict[type, Callable[[Any], str]]):
    """Writer functions by type. Other modules add writers; missing writers are created on use."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        self[kind] = write = _make_writer(kind)
        return write


def _make_writer(kind: type) -> Callable[[Any], str]:
    shape = to_document_value.dispatch(kind)
    if shape is not to_document_value.dispatch(object):
        return lambda value: to_json(shape(value))
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _make_dataclass_writer(kind)
    for base, write in COLLECTIONS.items():
        if issubclass(kind, base):
            return write
    return dumps


def _make_dataclass_writer(kind: type) -> Callable[[Any], str]:
    names = _field_names(kind)
    take = _attributes_getter(names)
    template = json_object_template(names)
    return lambda value: template % tuple([WRITERS[type(each)](each) for each in take(value)])


def json_object_template(names: Iterable[str]) -> str:
    """Return a %-template of an object with these names and "%s" for each value."""
    return f"{{{', '.join([f'{_str_to_json(name)}: %s' for name in names])}}}"


def cached_writer(write: Callable[[Any], str], max_texts: int) -> Callable[[Any], str]:
    """Wrap a writer with a cache of `max_texts` texts, for objects that occur in many places."""
    # keyed by id: comparing objects would take longer than writing them
    known: dict[int, tuple[object, str]] = {}

    def text(value: Any) -> str:
        found = known.get(id(value))
        if found is None:
            if len(known) >= max_texts:
                known.clear()
            found = known[id(value)] = (value, write(value))
        return found[1]

    return text


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    shape = SHAPES.get(kind, kind)
    if is_dataclass(shape):
        return tuple(field.name for field in fields(shape))
    return tuple(get_type_hints(shape))  # a named tuple


def _str_to_json(value: str) -> str:
    return encode_basestring_ascii(value).replace("\x7f", "\\u007f")


def _bool_to_json(value: bool) -> str:
    return "true" if value else "false"


def _float_to_json(value: float) -> str:
    return repr(value) if isfinite(value) else dumps(value)


def _none_to_json(_: None) -> str:
    return "null"


def _tuple_to_json(value: tuple[Any, ...]) -> str:
    return f"[{', '.join([WRITERS[type(each)](each) for each in value])}]"


def _mapping_to_json(value: Mapping[Any, Any]) -> str:
    pairs = [f"{_str_to_json(str(name))}: {to_json(each)}" for name, each in value.items()]
    return f"{{{', '.join(pairs)}}}"


WRITERS = _WritersByType(
    {
        str: _str_to_json,
        int: int.__repr__,
        float: _float_to_json,
        bool: _bool_to_json,
        type(None): _none_to_json,
    }
)

COLLECTIONS: dict[type, Callable[[Any], str]] = {
    tuple: _tuple_to_json,
    list: _tuple_to_json,
    Mapping: _mapping_to_json,
}
