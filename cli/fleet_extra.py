"""Report missing optional libraries. The functions return contexts for the libraries' imports."""

from __future__ import annotations

from contextlib import contextmanager

from queryprof.errors import QueryprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


def fleet_extra_imports() -> AbstractContextManager[None]:
    """Wrap imports of pyarrow or DuckDB. Raises QueryprofError if a library is not installed."""
    return extra_imports("fleet")


@contextmanager
def extra_imports(name: str) -> Iterator[None]:
    """Wrap imports of an extra's libraries. Raises QueryprofError if a library is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("queryprof"):
            raise
        raise QueryprofError(
            f"{error.name} is not installed; in a clone of queryprof, run: pip install '.[{name}]'"
        ) from error
