"""Reasons about runs and ended occurrences: what an open run waits for, and how an entry of the ledger ended."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from tidegate_core.explain.why.reason import CODES, Reason
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.language.values.states import Disposition, disposition_text
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import Run, last_setback


def ignored_constraints(reason: Reason, forced: str | None) -> Reason:
    """Returns the reason with the constraints that `force` ignored; `forced` is the field of `Run` and `LedgerRow`."""
    if forced is None:
        return reason
    told = json.loads(forced)
    text = f"{reason.text}; pending_timeout_action: force had it go although {told['reason']}"
    return replace(reason, text=text, values={**reason.values, "forced": ",".join(told["codes"])})


FOR_WANT_OF: Final = frozenset({"expired/trigger_timeout", "expired/evidence_expired", "skipped/nothing_new"})
"""Codes whose detail names the missing events."""


def of_ledger(row: LedgerRow) -> Reason:
    """Returns the outcome of an occurrence. For `launched`, the text also says how the run ended and why."""
    code = disposition_text(Disposition(row.disposition), row.reason)
    detail = row.detail
    values: dict[str, Compared] = {"nominal": format_instant(row.nominal), "at": format_instant(row.at)}
    if row.disposition == Disposition.LAUNCHED:
        values["run"] = row.job_id
        values["state"] = row.state or ""
        when = "" if row.ended_at is None else f" at {format_instant(row.ended_at)}"
        text = f"launched as run {row.job_id}, which ended as {row.state}{when}"
        return ignored_constraints(Reason(code, f"{text}: {detail}" if detail else text, None, values), row.forced)
    values["job"] = row.job_id
    if row.covered is not None and row.covered_from is not None:
        values["covered"] = row.covered
        values["covered_from"] = format_instant(row.covered_from)
    text = f"{CODES.get(code, code)}; decided at {format_instant(row.at)}"
    return Reason(code, f"{text}: {in_words(code, detail)}" if detail else text, None, values)


def in_words(code: str, detail: str) -> str:
    """Returns the detail of an entry as text for people; the entry stores blockers as a document for programs."""
    if detail.startswith("{"):
        return str(json.loads(detail)["reason"])
    return f"missing: {detail}" if code in FOR_WANT_OF else detail


def of_run(run: Run, now: Instant) -> Reason:
    """Returns what an open run waits for, with the constraints that it ignored."""
    return ignored_constraints(_waits_for(run, now), run.forced)


def _waits_for(run: Run, now: Instant) -> Reason:
    values: dict[str, Compared] = {"run": run.id, "attempt": run.attempt}
    attempt = f"attempt {run.attempt} of run {run.id}"
    if run.state == "lost":
        text = f"{attempt} was started and its host {run.program_host} does not answer"
        return Reason("lost", f"{text}; it is open until it is found, reports its end, or is released", None, values)
    if run.state == "running" and run.started_at is not None:
        # With several attempts, `started_at` is when the first one passed the start gate.
        since = (
            f"{'runs since' if run.failure is None else 'runs, the first one since'} {format_instant(run.started_at)}"
        )
        values["since"] = format_instant(run.started_at)
        if run.cancel_requested:
            return Reason("cancelling", f"{attempt} {since} and was asked to end", None, values)
        return Reason("running", f"{attempt} {since}", None, values)
    limit = format_instant(run.start_by)
    values["start_by"] = limit
    setback = _setback(run, values)
    if run.state == "submitted":
        text = f"{attempt} was taken by its launcher; its program has to come to the start gate by {limit}{setback}"
        return Reason("before_gate", text, run.start_by, values)
    if run.not_before > now:
        begins = format_instant(run.not_before)
        if run.failure is not None:
            failure = json.loads(run.failure)
            cause = failure["reason"] or failure["error_class"] or f"exit code {failure['exit_code']}"
            text = f"its program ended as {failure['outcome']} ({cause}); attempt {run.attempt}"
            values["failed_at"] = format_instant(failure["ended_at"])
            return Reason("retry_pause", f"{text} of run {run.id} begins at {begins}", run.not_before, values)
        text = f"the attempt before died before the start gate; {attempt} is submitted at {begins}{setback}"
        return Reason("submit_pause", text, run.not_before, values)
    text = f"{attempt} is admitted; a launcher has to take it by {limit}{setback}"
    return Reason("launching", text, run.start_by, values)


def _setback(run: Run, values: dict[str, Compared]) -> str:
    """Returns why the last submission failed, as text, and adds its known facts to the values."""
    setback = last_setback(run)
    if setback is None:
        return ""
    at = format_instant(setback["at"])
    values["setback_at"] = at
    if setback["attempt"] == run.attempt:
        return f"; at {at} none took it: {setback['reason']}"
    if setback["exit_code"] is not None:
        values["exit_code"] = setback["exit_code"]
    if setback["last_lines"]:
        values["last_lines"] = setback["last_lines"]
    return (
        f"; attempt {setback['attempt']} ended at {at}: {setback['reason']}{last_lines_in_words(setback['last_lines'])}"
    )


def last_lines_in_words(last_lines: str | None) -> str:
    """Returns the last lines of a program's error output as one line."""
    return f"; last lines: {' | '.join(last_lines.splitlines())}" if last_lines else ""


def why_it_ended(run: Run) -> tuple[str, dict[str, Compared]]:
    """Returns the launcher's facts about an ended run: text to append to its entry, and values."""
    values: dict[str, Compared] = {}
    if run.exit_code is not None and run.exit_code != 0:
        values["exit_code"] = run.exit_code
    if run.last_lines:
        values["last_lines"] = run.last_lines
    code = f"; exit code {run.exit_code}" if "exit_code" in values else ""
    return f"{code}{last_lines_in_words(run.last_lines)}", values
