"""What an admitted job, or the run that it has become, waits for."""

from __future__ import annotations

import json

from tidegate_core.constraints.base import Compared
from tidegate_core.model.instants import Instant, format_instant
from tidegate_core.records.run_plane import Run
from tidegate_core.why.reason import Reason
from tidegate_core.why.spite import in_spite


def of_run(run: Run, now: Instant) -> Reason:
    """Returns what an open run waits for, and what it goes in spite of."""
    return in_spite(_waits_for(run, now), run.forced)


def _waits_for(run: Run, now: Instant) -> Reason:
    values: dict[str, Compared] = {"run": run.id, "attempt": run.attempt}
    attempt = f"attempt {run.attempt} of run {run.id}"
    if run.state == "lost":
        text = f"{attempt} was started and its host {run.program_host} does not answer"
        return Reason("lost", f"{text}; it is open until it is found, reports its end, or is released", None, values)
    if run.state == "running" and run.started_at is not None:
        # Of several attempts the gate keeps when the first one passed.
        since = (
            f"{'runs since' if run.failure is None else 'runs, the first one since'} {format_instant(run.started_at)}"
        )
        values["since"] = format_instant(run.started_at)
        if run.cancel_requested:
            return Reason("cancelling", f"{attempt} {since} and was asked to end", None, values)
        return Reason("running", f"{attempt} {since}", None, values)
    limit = format_instant(run.start_by)
    values["start_by"] = limit
    if run.state == "submitted":
        text = f"{attempt} was taken by its launcher; its program has to come to the start gate by {limit}"
        return Reason("before_gate", text, run.start_by, values)
    if run.not_before > now:
        begins = format_instant(run.not_before)
        if run.failure is not None:
            failure = json.loads(run.failure)
            cause = failure["reason"] or failure["error_class"] or f"exit code {failure['exit_code']}"
            text = f"its program ended as {failure['outcome']} ({cause}); attempt {run.attempt}"
            values["failed_at"] = format_instant(failure["ended_at"])
            return Reason("retry_pause", f"{text} of run {run.id} begins at {begins}", run.not_before, values)
        text = f"the attempt before died before the start gate; {attempt} is submitted at {begins}"
        return Reason("submit_pause", text, run.not_before, values)
    return Reason("launching", f"{attempt} is admitted; a launcher has to take it by {limit}", run.start_by, values)
