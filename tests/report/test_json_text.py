"""JSON text equals that of Python's own encoder for the same values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryprof.report.json.writing import cached_writer, document_pieces, to_json

pytestmark = pytest.mark.once


@dataclass(frozen=True)
class Pair:
    first: Any
    second: Any


@dataclass(frozen=True)
class Single:
    only: Any


@dataclass(frozen=True)
class Empty:
    pass


SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SIMPLE,
    lambda inner: (
        st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Single, inner)
        | st.just(Empty())
    ),
)


def plain(value: Any) -> Any:
    """Return the values as the encoder takes them."""
    if isinstance(value, Pair | Single | Empty):
        return {name: plain(each) for name, each in vars(value).items()}
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return value


def without_delete(text: str) -> str:
    return text.replace("\x7f", "\\u007f")


@given(VALUES)
@pytest.mark.slow
def test_values(value: Any) -> None:
    written = to_json(value)
    # The names 1 and "1" of a mapping are both written, although they are equal in JSON.
    assert json.loads(written, parse_constant=str) == json.loads(
        json.dumps(plain(value)), parse_constant=str
    )
    assert written.isascii()
    assert written.isprintable()


@given(SIMPLE, st.lists(SIMPLE).map(tuple))
def test_simple_values_to_the_letter(value: Any, several: tuple[Any, ...]) -> None:
    assert to_json(value) == without_delete(json.dumps(value))
    assert to_json(several) == without_delete(json.dumps(several))


@given(VALUES, VALUES)
def test_a_document_in_pieces(first: Any, second: Any) -> None:
    """Each field, and each element of its lists, is on its own line."""
    document = Pair(first, second)
    text = "".join(document_pieces(document))
    assert json.loads(text, parse_constant=str) == json.loads(to_json(document), parse_constant=str)
    assert text.endswith("}\n")


def test_lines() -> None:
    pieces = document_pieces(Pair((1, Single("x")), {"a": (Empty(), None)}))
    assert "".join(pieces) == '{"first": [1,\n{"only": "x"}],\n"second": {"a": [{},\nnull]}}\n'


def test_kept_texts_are_made_once_and_forgotten_in_time() -> None:
    """An object's address may belong to another object later."""
    made: list[object] = []

    def write(value: list[int]) -> str:
        made.append(value)
        return str(value)

    text = cached_writer(write, 3)
    first = [0]
    assert [text(first) for _ in range(3)] == ["[0]"] * 3
    assert len(made) == 1
    assert [text([number]) for number in range(100)] == [f"[{number}]" for number in range(100)]
    assert text(first) == "[0]"
