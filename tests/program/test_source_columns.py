"""The attributes that a program reads of the rows of a query are found in its source."""

from __future__ import annotations

import pytest

from queryprof.program import source_columns
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
        ("[one.pk for one in await Model.all()]\n", ("pk",)),
        ("[one.text[:20] for one in query]\n", ("text",)),
        ("for one in query:\n    one.tags.append(3)\n", ()),
        ("for one in query:\n    one.data['a'] = 3\n", ()),
        ("for one in query:\n    del one.tags[0]\n", ()),
        ("[one.pk for one in query.distinct()]\n", ()),
        ("[one.pk for one in Model.objects.raw(sql)]\n", ()),
        ("[one.pk for one in session.execute(query)]\n", ()),
        ("[one.pk for one in session.execute(query).scalars()]\n", ("pk",)),
        ("[one.pk for one in session.execute(query).unique().scalars()]\n", ()),
        ("[one.pk for one in map(as_item, query)]\n", ()),
        ("for one in query:\n    if one.pk == 3:\n        break\nprint(one)\n", ()),
        ("[one.pk for one in query]\nprint(list(query))\n", ()),
        ("[one.pk for one in query]\nprint(query.count())\n", ("pk",)),
        ("this is not Python\n", ()),
    ],
)
def test_attributes_of_a_loop_over_rows(text: str, names: tuple[str, ...]) -> None:
    assert only_attributes(text, 1) == names


def test_the_source_is_searched_once_for_all_lines() -> None:
    """A source with many loops is not searched again for each of them."""
    text = "".join(f"[one.a{number} for one in query{number}]\n" for number in range(2_000))
    assert all(only_attributes(text, at + 1) == (f"a{at}",) for at in range(0, 2_000, 97))
    before = source_columns._loops_of.cache_info().hits
    only_attributes(text, 5)
    assert source_columns._loops_of.cache_info().hits == before + 1
