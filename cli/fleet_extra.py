"""The extra `fleet`: what needs pyarrow or DuckDB is imported inside of this."""

from __future__ import annotations

from contextlib import contextmanager

from queryprof.errors import QueryprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def fleet_extra() -> Iterator[None]:
    """For imports. Raises QueryprofError: what they need is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("queryprof"):
            raise
        raise QueryprofError(
            f"it needs {error.name}, which is not installed: pip install 'queryprof[fleet]'"
        ) from error
