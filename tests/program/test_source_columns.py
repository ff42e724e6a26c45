"""The attributes that a program reads of the rows of a query are found in its source."""

from __future__ import annotations

import pytest

from queryprof.program.source_columns import only_attributes


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[one.pk for one in query]\n", ("pk",)),
        ("{one.name: one.pk for one in query}\n", ("name", "pk")),
        ("{one.name.lower() for one in query if one.size > 3}\n", ("name", "size")),
        ("[one.a for one in query for _ in range(one.b)]\n", ("a", "b")),
        ("for one in query:\n    total += one.size\n", ("size",)),
        ("for one in query:\n    print(one)\n", ()),
        ("for one in query:\n    one.size = 3\n", ()),
        ("[one.save() for one in query]\n", ()),
        ("[(one, one.pk) for one in query]\n", ()),
        ("[a.pk for a, b in query]\n", ()),
        ("[one.pk for one in query], [two for two in query]\n", ()),
        ("list(query)\n", ()),
        ("this is not Python\n", ()),
    ],
)
def test_attributes_of_a_loop_over_rows(text: str, names: tuple[str, ...]) -> None:
    assert only_attributes(text, 1) == names
