"""The synchronous client: one method for each thing that the API can do, typed results, errors with a remedy.

    with Client("http://127.0.0.1:8080") as tidegate:
        tidegate.apply_schedule(spec)
        for run in tidegate.runs(namespace="flights"):
            print(run.id, run.state)

Writes are awaited: they return the receipt of the shard's owner, or raise. Without a `request_id` one is made for each
call. An error after which a write may have been taken names it: a repeat under the same id acts once. Thread-safe.
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
    """Speaks with one API.

    Args:
        url: Its base URL.
        timeout_s: For each exchange; the API itself answers writes within about 10 s.
        transport: For tests.
    """

    # -- schedules ----------------------------------------------------------------------------------------------------

    def schedules(
        self,
        namespace: str | None = None,
        *,
        suspended_from: datetime | None = None,
        suspended_to: datetime | None = None,
    ) -> Iterator[ScheduleView]:
        """All schedules, page by page; with a bound those that somebody suspended at `suspended_from` <= since <
        `suspended_to`, and are suspended still.
        """
        query = {"suspended_from": text_of(suspended_from), "suspended_to": text_of(suspended_to)}
        return self._all("/schedules", ScheduleView, {"namespace": namespace, **query})

    def schedule(self, namespace: str, name: str) -> ScheduleView:
        return self._get(schedule_path(namespace, name), ScheduleView)

    def why_schedule(self, namespace: str, name: str, at: str | None = None) -> WhyView:
        """Says why nothing more of a schedule runs now; with `at`, what became of that instant, or why nothing did.

        Args:
            namespace: The schedule's.
            name: The schedule's.
            at: RFC 3339, or a local time of the trigger's zone such as `2026-03-29T02:30`, which need not exist.
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
            expected_version: Compare-and-set; 0 means that it must not exist.
            on_update: What becomes of what is pending: `keep_due`, `restart`, `carry`, `finish_old` or `finish_admitted`; None is the spec's own word.
            actor: Who wants it, for the record.
            reason: Why, for the record.
            request_id: See the module.
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
        """Applies up to 100 definitions: when one of them cannot be, nothing is.

        All are looked at first, then each is a request of its own, at the version that it had. So each has its own
        receipt, in order, and one that somebody else changed in between says `conflict`.

        Args:
            specs: The documents.
            create_only: Whether one that exists is a conflict.
            on_update: As for one.
            actor: Who wants it, for the record.
            reason: Why, for the record.

        Raises:
            Conflict: Some exist, and nothing was applied.
            InvalidRequest: Some are wrong, and nothing was applied; fields begin with their place, such as `[0].trigger`.
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
        """Checks a definition and says what applying it would do; changes nothing."""
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
        """Deletes a schedule. Runs past the start gate are listed, and go on unless `cancel_running`."""
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
        """Deletes up to 100 schedules, as (namespace, name): when one of them does not exist (NotFound), none is.

        Each has its own receipt, in order; one that somebody else changed in between says `conflict`.
        """
        query = {"actor": actor, "reason": reason, "cancel_running": "true" if cancel_running else None}
        body = [{"namespace": namespace, "name": name} for namespace, name in names]
        return self._transport.ask(_RECEIPTS, "POST", f"{BASE}/schedules/delete", query=query, body=body).items

    def suspend_schedule(
        self, namespace: str, name: str, *, request_id: str | None = None, **fields: Any
    ) -> ReceiptView:
        """Stops a schedule. `fields`: `mode`, `until` (RFC 3339), `reason`, `actor`, `expected_version`."""
        return self._write("POST", f"{schedule_path(namespace, name)}/suspend", given(fields), {}, request_id)

    def resume_schedule(
        self, namespace: str, name: str, *, request_id: str | None = None, **fields: Any
    ) -> ReceiptView:
        """Lets a suspended schedule go on from now.

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
        """Lets all go on that somebody suspended within a span, such as that of a repair; each is its own request.

        What began suspended, or was suspended at another time, stays so: each resume is a compare-and-set with the
        suspension that was listed. Interrupted, it can be called again.

        Args:
            suspended_from: Begin of the span.
            suspended_to: Its end, which is not part of it.
            namespace: Only of this one.
            fields: `backlog`, `reason`, `actor`, for each of them.

        Yields:
            Each schedule as it was, and the receipt; or why it stays: somebody else has moved it meanwhile, it takes no such
            backlog, or nobody serves its shard now (AnswerPending: it goes on once somebody does).
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
        """Runs a schedule now; the receipt's `id` names the job and the run that comes of it.

        `fields`: `reason`, `actor`, `expected_version`, `force_overlap`.
        """
        return self._write("POST", f"{schedule_path(namespace, name)}/trigger", given(fields), {}, request_id)

    # -- sources ------------------------------------------------------------------------------------------------------

    def sources(self, namespace: str | None = None) -> list[SourceView]:
        """All sources; a cluster has at most 64."""
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
        """Creates a source (the document of `docs/events.md`) or replaces its mapping; what is produced afterwards is read."""
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
        """Deletes a source; what is produced afterwards is no event."""
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
        """All open jobs, those that still gather evidence first; in no order of time.

        Args:
            namespace: Only of this one.
            schedule: Only of schedules with this name.
            state: Only in this state, or in one of these.
            since: Only of this nominal instant or a later one.
            until: Only before this one.
        """
        query = {"namespace": namespace, "schedule": schedule, "state": _listed(state)}
        return self._all("/jobs", JobView, {**query, "since": text_of(since), "until": text_of(until)})

    def job(self, job_id: str) -> JobView:
        return self._get(job_path(job_id), JobView)

    def why_job(self, job_id: str) -> WhyView:
        """Says what a job, or the run of the same id, waits for, or what became of it."""
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
        """The newest runs: open ones, then those that ended in the last 30 days, newest end first.

        Args:
            namespace: Only of this one.
            schedule: Only of schedules with this name.
            state: Only in this state, or in one of these.
            limit: Most runs.
            since: Only what ended then or later, or is open.
            until: Only what ended before then.
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
        """Ends a run that is `lost`, on your word that its program is gone: if it still runs, a further attempt runs beside it."""
        return self._write("POST", f"{run_path(run_id)}/release", given(fields), {}, request_id)

    def run_logs(
        self,
        run_id: str,
        stream: Literal["stdout", "stderr"] = "stdout",
        offset: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
    ) -> LogView:
        """Returns the piece of the log that begins at `offset` (bytes), or `tail` lines before the end; follow `next_offset`."""
        query = {"stream": stream, "offset": offset if tail is None else None, "attempt": attempt, "tail": tail}
        return self._transport.ask(LogView.model_validate, "GET", f"{BASE}{run_path(run_id)}/logs", query=query)

    def occurrences(
        self,
        namespace: str,
        schedule: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[OccurrenceView]:
        """The ledger: what became of each occurrence whose nominal instant lies in `since` <= nominal < `until`."""
        query = {"namespace": namespace, "schedule": schedule, "since": text_of(since), "until": text_of(until)}
        return self._all("/occurrences", OccurrenceView, query)

    # -- messages, events, requests -----------------------------------------------------------------------------------

    def send_message(self, *, request_id: str | None = None, **fields: Any) -> ReceiptView:
        """Delivers a payload to a topic at a time. `fields` as in a `message.send` request, whose `id` is the request id as well."""
        return self._write("POST", "/messages", _with_null(fields, "payload"), {}, request_id)

    def send_messages(self, messages: Sequence[Mapping[str, Any]]) -> list[ReceiptView]:
        """Sends up to 1,000 messages at once; each has its own receipt, in order. Give each an `id` to repeat it safely."""
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
        """Puts an event on its topic; returns when the broker has acknowledged it.

        Without an `id` one is made, so that what a proxy repeats counts once. An error after which it may have been taken names the id.
        """
        event = {"id": str(uuid.uuid4()), **_with_null(fields, "data")}
        with saying(f"under event id {event['id']} a repeat counts once"):
            return self._transport.ask(
                lambda answer: EventView.model_validate(answer["items"][0]), "POST", f"{BASE}/events", body=event
            )

    def request(self, document: Mapping[str, Any]) -> ReceiptView:
        """Sends a request as it would stand on the topic, such as `{"type": "run.cancel", "run_id": ...}`."""
        return self._write("POST", "/requests", dict(document), {}, None)

    def receipt(self, location: str) -> ReceiptView:
        """Asks again for the answer to a request, at the `location` of an `AnswerPending`."""
        return self._transport.ask(ReceiptView.model_validate, "GET", location)


_RECEIPTS = Page[ReceiptView].model_validate


def _listed(state: str | Sequence[str] | None) -> list[str] | None:
    return [state] if isinstance(state, str) else None if state is None else list(state)


def _with_null(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the fields that were given; None is a value of this one, JSON's null."""
    return given(fields) | {each: fields[each] for each in (name,) if each in fields}
