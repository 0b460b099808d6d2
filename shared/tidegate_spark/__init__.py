"""Library for programs: the wrapper that passes the start gate, and a program's context and reports.

Standard library only, because it runs in users' environments. A program needs these names and no others:

    from tidegate_spark import context, report_partition, set_output

    day = context().correlation
    ...                                                      # write the data, commit it
    report_partition("flights.joined", day, rows=842)        # returns when the event is on `tidegate.events`
    set_output("rows", 842)                                  # for the runs that this one triggers
"""

from __future__ import annotations

from tidegate_spark.errors import NotInRun, OutputsTooLarge, ReportFailed, TidegateError
from tidegate_spark.reports import report_outputs, report_partition, set_output
from tidegate_spark.run_context import (
    Context,
    DataInterval,
    DataPartition,
    JobInfo,
    RunInfo,
    ScheduleInfo,
    Upstream,
    context,
)

__all__ = [
    "Context",
    "DataInterval",
    "DataPartition",
    "JobInfo",
    "NotInRun",
    "OutputsTooLarge",
    "ReportFailed",
    "RunInfo",
    "ScheduleInfo",
    "TidegateError",
    "Upstream",
    "context",
    "report_outputs",
    "report_partition",
    "set_output",
]
