"""The synchronous client: one method for each action of the API, typed results, errors with a remedy.

    with Client("http://127.0.0.1:8080") as tidegate:
        tidegate.apply_schedule(spec) for run in tidegate.runs(namespace="flights"):
            print(run.id, run.state)

A write waits for the receipt of the shard's owner and returns it, or raises. Without a `request_id` each call creates
one. If a write may have been accepted in spite of an error, the error names the id: a repeat with the same id acts
once. Thread-safe.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Literal

from tidegate_client.api_calls import BASE, PAGE_SIZE_MAX, given, saying, text_of
from tidegate_client.errors import AnswerPending, Conflict, InvalidRequest, NotFound, TidegateError
from tidegate_client.operator_calls import OperatorCalls
from tidegate_client.resource_paths import job_path, run_path, schedule_path, source_path
from tidegate_client.views import (
    DryRun,
    EventView,
    JobView,
    LogView,
    MessageView,
    OccurrenceView,
    Page,
    ReceiptView,
    RunView,
    ScheduleView,
    SourceView,
    WhyView,
)


class Client(OperatorCalls):
    """Client of one API.

    Args:
        url: Base URL of the API.
        timeout_s: Time-out of each exchange; the API itself answers writes within about 10 s.
        transport: Replacement of the network, for tests.
    """

    # -- schedules ----------------------------------------------------------------------------------------------------

    def schedules(
        self,
        namespace: str | None = None,
        *,
        suspended_from: datetime | None = None,
        suspended_to: datetime | None = None,
    ) -> Iterator[ScheduleView]:
        """Yields all schedules, page by page.

        With a bound, yields only schedules that a user suspended at `suspended_from` <= since < `suspended_to` and that
        are still suspended.
        """
        query = {"suspended_from": text_of(suspended_from), "suspended_to": text_of(suspended_to)}
        return self._all("/schedules", ScheduleView, {"namespace": namespace, **query})

    def schedule(self, namespace: str, name: str) -> ScheduleView:
        return self._get(schedule_path(namespace, name), ScheduleView)

    def why_schedule(self, namespace: str, name: str, at: str | None = None) -> WhyView:
        """Returns why a schedule starts no further runs now; with `at`, the outcome of that instant, or why it has
        none.

        Args:
            namespace: Namespace of the schedule.
            name: Name of the schedule.
            at: RFC 3339, or a local time in the trigger's zone such as `2026-03-29T02:30`, which may not exist.
        """
        path = f"{BASE}{schedule_path(namespace, name)}/why"
        return self._transport.ask(WhyView.model_validate, "GET", path, query={"at": at})

    def apply_schedule(
        self,
        spec: Mapping[str, Any],
        *,
        expected_version: int | None = None,
        on_update: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
        request_id: str | None = None,
    ) -> ReceiptView:
        """Creates a schedule or replaces its definition.

        Args:
            spec: The document of `docs/schedules.md`; a program's `file` must be absolute.
            expected_version: Compare-and-set; 0 requires that the schedule does not exist.
            on_update: Treatment of pending jobs: `keep_due`, `restart`, `carry`, `finish_old` or `finish_admitted`;
                None uses the spec's own value.
            actor: Who wants it, for the record.
            reason: Why, for the record.
            request_id: Id that makes a repeat act once; None creates one.
        """
        query = {"expected_version": expected_version, "on_update": on_update, "actor": actor, "reason": reason}
        path = schedule_path(str(spec.get("namespace", "")), str(spec.get("name", "")))
        return self._write("PUT", path, dict(spec), query, request_id)

    def apply_schedules(
        self,
        specs: Sequence[Mapping[str, Any]],
        *,
        create_only: bool = False,
        on_update: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> list[ReceiptView]:
        """Applies up to 100 definitions; if one of them is invalid, none is applied.

        All are checked first; then each is its own request, at the version that it had. So each has its own
        receipt, in order, and a schedule that was changed since has the receipt `conflict`.

        Args:
            specs: Documents of the schedules.
            create_only: Whether an existing schedule is a conflict.
            on_update: As for `apply_schedule`.
            actor: Who wants it, for the record.
            reason: Why, for the record.

        Raises:
            Conflict: Some exist, and nothing was applied.
            InvalidRequest: Some are invalid, and nothing was applied; fields begin with their place, such as
                `[0].trigger`.
        """
        query = {
            "on_update": on_update,
            "actor": actor,
            "reason": reason,
            "create_only": "true" if create_only else None,
        }
        body = [dict(spec) for spec in specs]
        return self._transport.ask(_RECEIPTS, "POST", f"{BASE}/schedules", query=query, body=body).items

    def try_schedule(
        self, spec: Mapping[str, Any], *, expected_version: int | None = None, on_update: str | None = None
    ) -> DryRun:
        """Checks a definition and returns what an apply would do; changes nothing."""
        path = schedule_path(str(spec.get("namespace", "")), str(spec.get("name", "")))
        query = {"dry_run": "true", "expected_version": expected_version, "on_update": on_update}
        return self._transport.ask(DryRun.model_validate, "PUT", BASE + path, query=query, body=dict(spec))

    def delete_schedule(
        self,
        namespace: str,
        name: str,
        *,
        expected_version: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
        cancel_running: bool = False,
        request_id: str | None = None,
    ) -> ReceiptView:
        """Deletes a schedule. Runs past the start gate are listed, and continue unless `cancel_running` is set."""
        query: dict[str, Any] = {"expected_version": expected_version, "actor": actor, "reason": reason}
        if cancel_running:
            query["cancel_running"] = "true"
        return self._write("DELETE", schedule_path(namespace, name), None, query, request_id)

    def delete_schedules(
        self,
        names: Sequence[tuple[str, str]],
        *,
        actor: str | None = None,
        reason: str | None = None,
        cancel_running: bool = False,
    ) -> list[ReceiptView]:
        """Deletes up to 100 schedules, given as (namespace, name). If one of them does not exist (NotFound), none is
        deleted.

        Each has its own receipt, in order; a schedule that was changed since the check has the receipt `conflict`.
        """
        query = {"actor": actor, "reason": reason, "cancel_running": "true" if cancel_running else None}
        body = [{"namespace": namespace, "name": name} for namespace, name in names]
        return self._transport.ask(_RECEIPTS, "POST", f"{BASE}/schedules/delete", query=query, body=body).items

    def suspend_schedule(
        self, namespace: str, name: str, *, request_id: str | None = None, **fields: Any
    ) -> ReceiptView:
        """Suspends a schedule. `fields`: `mode`, `until` (RFC 3339), `reason`, `actor`, `expected_version`."""
        return self._write("POST", f"{schedule_path(namespace, name)}/suspend", given(fields), {}, request_id)

    def resume_schedule(
        self, namespace: str, name: str, *, request_id: str | None = None, **fields: Any
    ) -> ReceiptView:
        """Resumes a suspended schedule from now on.

        `fields`: `backlog`, `suspended_at` (RFC 3339: only that suspension), `reason`, `actor`, `expected_version`.
        """
        return self._write("POST", f"{schedule_path(namespace, name)}/resume", given(fields), {}, request_id)

    def resume_suspended(
        self,
        suspended_from: datetime,
        suspended_to: datetime,
        namespace: str | None = None,
        **fields: Any,
    ) -> Iterator[tuple[ScheduleView, ReceiptView | TidegateError]]:
        """Resumes all schedules that were suspended within a span, such as that of a repair; each with its own request.

        Schedules that began suspended, or were suspended at another time, stay suspended: each resume is a
        compare-and-set with the listed suspension. After an interruption it can be called again.

        Args:
            suspended_from: Begin of the span.
            suspended_to: End of the span, exclusive.
            namespace: Only schedules of this namespace.
            fields: `backlog`, `reason`, `actor`, for each of them.

        Yields:
            Each schedule as it was, and its receipt or the reason why it stays suspended. It was changed since, it does
            not support the backlog mode, or no node serves its shard now (AnswerPending: it resumes once a node does).
        """
        for view in self.schedules(namespace, suspended_from=suspended_from, suspended_to=suspended_to):
            since = None if view.suspension is None else text_of(view.suspension.since)
            try:
                yield view, self.resume_schedule(view.namespace, view.name, suspended_at=since, **fields)
            except (AnswerPending, Conflict, InvalidRequest, NotFound) as refusal:
                yield view, refusal

    def trigger_schedule(
        self, namespace: str, name: str, *, request_id: str | None = None, **fields: Any
    ) -> ReceiptView:
        """Runs a schedule now; the receipt's `id` names the job and its later run.

        `fields`: `reason`, `actor`, `expected_version`, `force_overlap`.
        """
        return self._write("POST", f"{schedule_path(namespace, name)}/trigger", given(fields), {}, request_id)

    # -- sources ------------------------------------------------------------------------------------------------------

    def sources(self, namespace: str | None = None) -> list[SourceView]:
        """Returns all sources; a cluster has at most 64."""
        query = {"namespace": namespace}
        return self._transport.ask(Page[SourceView].model_validate, "GET", f"{BASE}/sources", query=query).items

    def source(self, namespace: str, name: str) -> SourceView:
        return self._get(source_path(namespace, name), SourceView)

    def apply_source(
        self,
        spec: Mapping[str, Any],
        *,
        expected_version: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
        request_id: str | None = None,
    ) -> ReceiptView:
        """Creates a source (the document of `docs/events.md`) or replaces its mapping. Records produced afterwards are
        read.
        """
        query = {"expected_version": expected_version, "actor": actor, "reason": reason}
        path = source_path(str(spec.get("namespace", "")), str(spec.get("name", "")))
        return self._write("PUT", path, dict(spec), query, request_id)

    def delete_source(
        self,
        namespace: str,
        name: str,
        *,
        expected_version: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
        request_id: str | None = None,
    ) -> ReceiptView:
        """Deletes a source. Records produced afterwards become no events."""
        query = {"expected_version": expected_version, "actor": actor, "reason": reason}
        return self._write("DELETE", source_path(namespace, name), None, query, request_id)

    # -- jobs, runs, occurrences --------------------------------------------------------------------------------------

    def jobs(
        self,
        namespace: str | None = None,
        schedule: str | None = None,
        state: str | Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[JobView]:
        """Yields all open jobs: first those that gather evidence, then the others, in no order of time.

        Args:
            namespace: Only jobs of this namespace.
            schedule: Only jobs of schedules with this name.
            state: Only jobs in this state, or in one of these.
            since: Only jobs with this nominal instant or a later one.
            until: Only jobs with an earlier nominal instant.
        """
        query = {"namespace": namespace, "schedule": schedule, "state": _listed(state)}
        return self._all("/jobs", JobView, {**query, "since": text_of(since), "until": text_of(until)})

    def job(self, job_id: str) -> JobView:
        return self._get(job_path(job_id), JobView)

    def why_job(self, job_id: str) -> WhyView:
        """Returns what a job, or the run of the same id, waits for, or how it ended."""
        return self._get(f"{job_path(job_id)}/why", WhyView)

    def cancel_job(self, job_id: str, *, request_id: str | None = None, **fields: Any) -> ReceiptView:
        return self._write("POST", f"{job_path(job_id)}/cancel", given(fields), {}, request_id)

    def runs(
        self,
        namespace: str | None = None,
        schedule: str | None = None,
        state: str | Sequence[str] | None = None,
        limit: int = 50,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[RunView]:
        """Returns the newest runs: open ones, then those that ended in the last 30 days, newest end first.

        Args:
            namespace: Only runs of this namespace.
            schedule: Only runs of schedules with this name.
            state: Only runs in this state, or in one of these.
            limit: Most runs.
            since: Only runs that ended then or later, or are open.
            until: Only runs that ended before then.
        """
        query = {
            "namespace": namespace,
            "schedule": schedule,
            "state": _listed(state),
            "since": text_of(since),
            "until": text_of(until),
        }
        return list(islice(self._all("/runs", RunView, query, min(limit, PAGE_SIZE_MAX)), limit))

    def run(self, run_id: str) -> RunView:
        return self._get(run_path(run_id), RunView)

    def cancel_run(self, run_id: str, *, request_id: str | None = None, **fields: Any) -> ReceiptView:
        return self._write("POST", f"{run_path(run_id)}/cancel", given(fields), {}, request_id)

    def release_run(self, run_id: str, *, request_id: str | None = None, **fields: Any) -> ReceiptView:
        """Ends a `lost` run when you are certain that its program is gone. If it still runs, a further attempt may run
        concurrently.
        """
        return self._write("POST", f"{run_path(run_id)}/release", given(fields), {}, request_id)

    def run_logs(
        self,
        run_id: str,
        stream: Literal["stdout", "stderr"] = "stdout",
        offset: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
    ) -> LogView:
        """Returns the piece of the log from `offset` (bytes), or the last `tail` lines; continue at `next_offset`."""
        query = {"stream": stream, "offset": offset if tail is None else None, "attempt": attempt, "tail": tail}
        return self._transport.ask(LogView.model_validate, "GET", f"{BASE}{run_path(run_id)}/logs", query=query)

    def occurrences(
        self,
        namespace: str,
        schedule: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[OccurrenceView]:
        """Yields the ledger: the outcome of each occurrence with a nominal instant in `since` <= nominal < `until`."""
        query = {"namespace": namespace, "schedule": schedule, "since": text_of(since), "until": text_of(until)}
        return self._all("/occurrences", OccurrenceView, query)

    # -- messages, events, requests -----------------------------------------------------------------------------------

    def send_message(self, *, request_id: str | None = None, **fields: Any) -> ReceiptView:
        """Delivers a payload to a topic at a time. `fields` as in a `message.send` request; its `id` is the request id
        too.
        """
        return self._write("POST", "/messages", _with_null(fields, "payload"), {}, request_id)

    def send_messages(self, messages: Sequence[Mapping[str, Any]]) -> list[ReceiptView]:
        """Sends up to 1,000 messages at once; each has its own receipt, in order. An `id` in each makes a repeat
        safe.
        """
        body = [dict(message) for message in messages]
        return self._transport.ask(_RECEIPTS, "POST", f"{BASE}/messages", body=body).items

    def message(self, namespace: str, *, key: str | None = None, message_id: str | None = None) -> MessageView:
        query = {"namespace": namespace, "key": key, "message_id": message_id}
        return self._transport.ask(MessageView.model_validate, "GET", f"{BASE}/messages", query=query)

    def cancel_message(
        self,
        namespace: str,
        *,
        key: str | None = None,
        message_id: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
        request_id: str | None = None,
    ) -> ReceiptView:
        query = {"namespace": namespace, "key": key, "message_id": message_id, "actor": actor, "reason": reason}
        return self._write("DELETE", "/messages", None, query, request_id)

    def send_event(self, **fields: Any) -> EventView:
        """Appends an event to its topic; returns when the broker has acknowledged it.

        Without an `id` one is created, so that a proxy's repeat counts once. If the event may have been accepted in
        spite of an error, the error names the id.
        """
        event = {"id": str(uuid.uuid4()), **_with_null(fields, "data")}
        with saying(f"under event id {event['id']} a repeat counts once"):
            return self._transport.ask(
                lambda answer: EventView.model_validate(answer["items"][0]), "POST", f"{BASE}/events", body=event
            )

    def request(self, document: Mapping[str, Any]) -> ReceiptView:
        """Sends a request in the topic's form, such as `{"type": "run.cancel", "run_id": ...}`."""
        return self._write("POST", "/requests", dict(document), {}, None)

    def receipt(self, location: str) -> ReceiptView:
        """Reads the answer to a request again, at the `location` of an `AnswerPending`."""
        return self._transport.ask(ReceiptView.model_validate, "GET", location)


_RECEIPTS = Page[ReceiptView].model_validate


def _listed(state: str | Sequence[str] | None) -> list[str] | None:
    return [state] if isinstance(state, str) else None if state is None else list(state)


def _with_null(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the given fields. For the field `name`, None is a value: JSON's null."""
    return given(fields) | {each: fields[each] for each in (name,) if each in fields}
