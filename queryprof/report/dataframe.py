"""The ranking as a pandas.DataFrame. pandas is optional."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queryprof.report.columns import table_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from queryprof.analysis.report import Report


def dataframe_of(report: Report) -> DataFrame:
    """Return the ranked statements by call site. Raises ImportError if pandas is not installed."""
    from pandas import DataFrame

    names, rows = table_of(report, None)
    return DataFrame.from_records(rows, columns=list(names), index="rank")
