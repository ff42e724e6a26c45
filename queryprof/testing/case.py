"""unittest's TestCase with limits on database work. Use it alone or in front of another
TestCase.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable, Sequence
from typing import Any

from queryprof.core.absence import absence_reason
from queryprof.testing.at_most import at_most
from queryprof.testing.growth import SIZES, check_growth
from queryprof.testing.meter import meter


class TestCase(unittest.TestCase):
    """A TestCase that can limit the database work of its blocks.

        class Orders(queryprof.TestCase, django.test.TestCase):
            def test_list(self):
                with self.assertAtMost(queries=3, plans="no full scan"):
                    self.client.get("/orders/")

    The whole class is recorded, so that each block does not have to start a recording.
    """

    @classmethod
    def setUpClass(cls) -> None:
        if not absence_reason():
            block = meter.open(with_plans=False, keeps_parts=False)
            cls.addClassCleanup(meter.close, block)
        super().setUpClass()

    def assertAtMost(self, queries: int | None = None, **limits: Any) -> at_most:  # noqa: N802
        """Limit the database work of a `with` block: see queryprof.at_most."""
        return at_most(queries, **limits)

    def assertGrowth(  # noqa: N802
        self,
        populate: Callable[..., object],
        run: Callable[[], object],
        max_growth: float = 1,
        sizes: Sequence[int] = SIZES,
    ) -> None:
        """Limit how the database work grows with the data: see queryprof.check_growth."""
        __tracebackhide__ = True
        check_growth(populate, run, max_growth, sizes)
