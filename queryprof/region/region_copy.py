"""Copy the region of this process at one moment, while its threads go on recording."""

from __future__ import annotations

from bisect import bisect_right

from queryprof.core import _core
from queryprof.region.region import START, Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def copied_region() -> Region:
    """Return a copy of this process's region. The figures are consistent, because no thread records
    anything during the copying.
    """
    live = Region(_core.region())
    while True:
        copied = Region(_Memory(live, _core.region()))  # type: ignore[arg-type]
        if copied.counts == live.counts:
            return copied
        live.read_head()  # a table has grown since it was read


class _Memory:
    """A copy of the used ranges of a region's memory. Most of the memory is unused."""

    def __init__(self, live: Region, memory: memoryview) -> None:
        self._length = len(memory)
        ranges = sorted(set(_used_ranges(live, memory)))
        self._starts = [at for at, _ in ranges]
        # join() copies buffers other than bytes without releasing the GIL.
        copied = memoryview(b"".join([memory[at : at + length] for at, length in ranges]))
        self._parts, begin = [], 0
        for _, length in ranges:
            self._parts.append(copied[begin : begin + length])
            begin += length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, wanted: slice) -> memoryview:
        place = bisect_right(self._starts, wanted.start) - 1
        start = self._starts[place]
        return self._parts[place][wanted.start - start : wanted.stop - start]


def _used_ranges(live: Region, memory: memoryview) -> Iterator[tuple[int, int]]:
    """Yield the start and the length of the header, the description and each table's rows."""
    tables = live.tables.values()
    yield 0, min(table.at for table in tables)
    _, _, at, length = START.unpack(memory[: START.size])
    if at >= min(table.at for table in tables):
        yield at, length
    for table in tables:
        if live.counts[table.name]:
            yield table.at, table.row_bytes * live.counts[table.name]
