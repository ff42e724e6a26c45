"""The JSON Schemas (draft 2020-12) of the JSON documents, generated from their dataclasses."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from queryprof.report.json.writing import SHAPES

DOCUMENTS = {
    "report": "queryprof.report.json.report_types",
    "findings": "queryprof.report.json.findings",
    "comparison": "queryprof.report.json.comparison",
}
"""The module that defines each document's type, `Document`."""

TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def document_schema(name: str) -> dict[str, Any]:
    """Return the schema of one of DOCUMENTS."""
    known: dict[str, Any] = {}
    whole = _object_schema(import_module(DOCUMENTS[name]).Document, known)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"queryprof {name}",
    }
    return {**head, **whole, "$defs": known}


def _object_schema(kind: type, known: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        "type": "object",
        "description": " ".join(cleandoc(kind.__doc__ or "").split()),
        "properties": {name: _type_schema(hint, known) for name, hint in hints.items()},
        "required": list(hints),
        "additionalProperties": False,
    }


def _type_schema(hint: Any, known: dict[str, Any]) -> dict[str, Any]:  # noqa: PLR0911 all kinds
    arguments = get_args(hint)
    origin = get_origin(hint)
    if origin is Annotated:
        return {**_type_schema(arguments[0], known), "description": arguments[1]}
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type_schema(one, known) for one in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _type_schema(arguments[0], known)}
    if origin is Mapping:
        names = (
            {"propertyNames": _type_schema(arguments[0], known)} if arguments[0] is not str else {}
        )
        return {
            "type": "object",
            **names,
            "additionalProperties": _type_schema(arguments[1], known),
        }
    hint = SHAPES.get(hint, hint) if isinstance(hint, type) else hint
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        name = hint.__name__.lower()
        if name not in known:
            known[name] = {}  # first, because the type may refer to itself
            known[name] = _object_schema(hint, known)
        return {"$ref": f"#/$defs/{name}"}
    return {"type": TYPES[hint]}
