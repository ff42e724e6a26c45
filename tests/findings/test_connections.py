"""A function that opens a connection for each query, and other problems of the same function."""

from __future__ import annotations

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.test_cause_choices import MS, READ, SITE, findings

pytestmark = pytest.mark.once


@pytest.mark.parametrize(("steps", "first_ms", "is_hidden"), [(30, 80, True), (60_000, 900, False)])
def test_a_query_that_saves_more_than_its_connections_is_named(
    steps: int, first_ms: int, is_hidden: bool
) -> None:
    connect = aggregate("(connect)", SITE, ns=20 * MS, count=100)._replace(operation="connect")
    query = aggregate(READ, SITE, ns=first_ms * MS, count=100)
    query = query._replace(vm_steps=steps * 100)
    categories = {one.category for one in findings(profile_of(connect, query))}
    assert "connection_per_query" in categories
    assert (len(categories) == 1) == is_hidden


@pytest.mark.parametrize(("attachments", "is_repeated"), [(1, True), (2, False)])
def test_a_text_that_reads_one_attached_file_after_another(
    attachments: int, is_repeated: bool
) -> None:
    attach = aggregate("ATTACH ? AS month", SITE, ns=MS, count=attachments)
    query = aggregate("SELECT sum(a) FROM month.t", SITE, ns=600 * MS, count=4)
    found = {one.category for one in findings(profile_of(attach, query))}
    assert ("duplicate_query" in found) == is_repeated
