"""The extras: what needs the libraries of one is imported inside of this."""

from __future__ import annotations

from contextlib import contextmanager

from queryprof.errors import QueryprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


def fleet_extra() -> AbstractContextManager[None]:
    """For imports of what needs pyarrow or DuckDB. Raises QueryprofError."""
    return extra("fleet")


@contextmanager
def extra(name: str) -> Iterator[None]:
    """For imports. Raises QueryprofError: what they need is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("queryprof"):
            raise
        raise QueryprofError(
            f"it needs {error.name}, which is not installed: pip install 'queryprof[{name}]'"
        ) from error
