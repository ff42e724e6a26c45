"""unittest's TestCase with limits on the database's work: alone, or before another TestCase."""

from __future__ import annotations

import unittest
from typing import Any

from queryprof.core.absence import absence
from queryprof.testing.at_most import at_most
from queryprof.testing.meter import meter


class TestCase(unittest.TestCase):
    """A TestCase that can hold its blocks to limits.

        class Orders(queryprof.TestCase, django.test.TestCase):
            def test_list(self):
                with self.assertAtMost(queries=3, plans="no full scan"):
                    self.client.get("/orders/")

    Its tests are recorded, so that a block has no start of its own.
    """

    @classmethod
    def setUpClass(cls) -> None:
        if not absence():
            block = meter.open(with_plans=False, keeps_parts=False)
            cls.addClassCleanup(meter.close, block)
        super().setUpClass()

    def assertAtMost(self, queries: int | None = None, **limits: Any) -> at_most:  # noqa: N802
        """Holds a `with` block to limits: see queryprof.at_most."""
        return at_most(queries, **limits)
