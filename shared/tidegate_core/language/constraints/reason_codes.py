"""Why a job waits: the closed list of codes, for metrics and programs, each with what it means.

A verdict carries one of these words, the values that were compared, and the next instant at which it can change. `docs/schedules.md`
has a row for each; a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

ReasonCode: TypeAlias = Literal[
    "concurrency",
    "window_closed",
    "delayed",
    "ran_recently",
    "still_running",
    "rate_reached",
    "load_high",
    "load_unknown",
    "flexible_window",
    "catch_up_pacing",
]

REASONS: Final[Mapping[ReasonCode, str]] = {
    "concurrency": "as many runs as the limit lets run are open, or others wait for it since longer",
    "window_closed": "no window is open",
    "delayed": "the delay after satisfaction has not passed",
    "ran_recently": "the last start, finish or success is too recent",
    "still_running": "a run whose end counts is still open",
    "rate_reached": "as many runs as the rate allows were admitted in its span",
    "load_high": "the load is at its bound, or has not fallen far enough since",
    "load_unknown": "there is no fresh sample of the load",
    "flexible_window": "the occurrence's own place in the flexible window of its time trigger is still to come",
    "catch_up_pacing": "runs that make up for missed instants start one at a time, and another of them is open",
}
