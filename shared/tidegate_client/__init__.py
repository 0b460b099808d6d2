"""Library for users: a synchronous client with typed answers and errors, and builders for schedules."""

from __future__ import annotations

from tidegate_client.client import Client
from tidegate_client.errors import (
    AnswerPending,
    ApiFailed,
    ApiUnavailable,
    ApiUnreachable,
    Conflict,
    InvalidRequest,
    NotFound,
    TidegateError,
)
from tidegate_client.schedule_builder import ScheduleBuilder
from tidegate_client.spec_helpers import (
    all_of,
    any_of,
    at,
    at_least,
    cron,
    every,
    on_data,
    on_event,
    on_run,
    on_size,
    pyspark,
    python,
    times,
)

__all__ = [
    "AnswerPending",
    "ApiFailed",
    "ApiUnavailable",
    "ApiUnreachable",
    "Client",
    "Conflict",
    "InvalidRequest",
    "NotFound",
    "ScheduleBuilder",
    "TidegateError",
    "all_of",
    "any_of",
    "at",
    "at_least",
    "cron",
    "every",
    "on_data",
    "on_event",
    "on_run",
    "on_size",
    "pyspark",
    "python",
    "times",
]
