"""Explanations for `why`: reads the facts, and the core explains them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pydantic import ValidationError

from tidegate_api.cluster_map import ClusterMap, MapReader
from tidegate_api.http.problem_responses import not_found, unavailable
from tidegate_api.reads.definitions import is_of_definition, unreadable
from tidegate_api.reads.history_keys import ended_run
from tidegate_api.reads.view_builders import why_view
from tidegate_api.reads.why_snapshot import (
    JobMovedOn,
    answered,
    ended_in,
    evidence_in,
    facts_of,
    with_evidence,
    with_job,
    with_latest,
    with_ledger,
)
from tidegate_api.requests.shard_routing import run_shard
from tidegate_api.thread_pools import Pools
from tidegate_client.views import WhyView
from tidegate_core.explain.why.explain import (
    question_of,
    why_ended,
    why_gathering,
    why_job,
    why_moving,
    why_schedule,
    why_schedule_at,
)
from tidegate_core.explain.why.reason import Explanation
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.problems import InvalidInput, Problem
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import Run
from tidegate_core.runs.run_completion import ledger_row
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store

MOVES_MAX: Final = 10
"""Most attempts to read a job that changes its form. It has four: evidence, job, run, ended run."""


class WhyReads:
    """Explains schedules, jobs and runs. Each explanation uses one thread, because its reads depend on each other."""

    def __init__(self, store: Store, pools: Pools, cluster: MapReader, clock: Clock) -> None:
        self._store = store
        self._pools = pools
        self._cluster = cluster
        self._clock = clock

    async def schedule(self, namespace: str, name: str, at: str | None) -> WhyView:
        """Explains a schedule, or its instant `at`. Raises ApiProblem (404; 503 for an unreadable definition), InvalidInput (`at`)."""
        cluster, now = await self._cluster.current(), self._clock.now_ms()
        explanation = await self._explained(
            f"schedule {namespace}/{name}", lambda: explain_schedule(self._store, cluster, namespace, name, at, now)
        )
        if explanation is None:
            raise not_found(f"schedule {namespace}/{name}: does not exist; tidegate schedule list shows the schedules")
        return why_view(explanation)

    async def job(self, job_id: str) -> WhyView:
        """Explains a job or its run. Raises ApiProblem (404; 503 for an unreadable definition), InvalidInput (no such shard)."""
        cluster, now = await self._cluster.current(), self._clock.now_ms()
        shard = run_shard(job_id, cluster.shards, "job_id")
        explanation = await self._explained(
            f"job {job_id}", lambda: explain_job(self._store, cluster, shard, job_id, now)
        )
        if explanation is None:
            looked = "open jobs, ended runs, and ledger rows of the last 90 days"
            way_out = "tidegate why NAMESPACE/NAME --at TIME explains an instant of a schedule"
            raise not_found(f"job {job_id}: not found among {looked}; {way_out}")
        return why_view(explanation)

    async def _explained(self, subject: str, explain: Callable[[], Explanation | None]) -> Explanation | None:
        try:
            return await self._pools.read(explain)
        except ValidationError as refusal:
            if not is_of_definition(refusal):
                raise
            # During an upgrade an API process of the newer release can read it.
            raise unavailable(f"{subject}: {unreadable(refusal)}") from refusal


def explain_schedule(
    store: Store, cluster: ClusterMap, namespace: str, name: str, at: str | None, now: Instant
) -> Explanation | None:
    """Returns the explanation; None if the schedule never existed. Raises InvalidInput if `at` is no instant."""
    facts = facts_of(store, cluster, namespace, name, now)
    if facts is None:
        return None
    if at is None:
        lately = with_latest(store, facts)
        return answered(store, facts.shard, lambda views: why_schedule(views, lately))
    try:
        question = question_of(facts, at)
    except ValueError as error:
        raise InvalidInput([Problem("at", f'"{at}" {error}')]) from error
    around = with_ledger(store, facts, min(question.instants))
    return answered(store, facts.shard, lambda views: why_schedule_at(views, around, question))


def explain_job(store: Store, cluster: ClusterMap, shard: int, job_id: str, now: Instant) -> Explanation | None:
    """Returns the explanation; None if no row of the job exists."""
    for _ in range(MOVES_MAX):
        try:
            return _explain_job(store, cluster, shard, job_id, now)
        except JobMovedOn:
            continue
    return why_moving(job_id, now)


def _explain_job(store: Store, cluster: ClusterMap, shard: int, job_id: str, now: Instant) -> Explanation | None:
    """Returns the explanation, or None. Raises JobMovedOn if the job changed its form between two reads."""
    open_job = keys.job(shard, job_id)
    found = store.get([open_job])
    row = found.get(open_job)
    if row is None and (run := ended_run(store, shard, job_id)) is not None:
        ended_as = from_item(Run, run)
        return why_ended(ledger_row(ended_as, ended_as.ended_at or now), ended_as)
    if row is None and (ended := ended_in(store, shard, job_id)) is not None:
        return why_ended(ended)
    row = row or evidence_in(store, shard, job_id)
    if row is None:
        # The evidence ended during the reads, or the job never existed.
        ended = ended_in(store, shard, job_id)
        return None if ended is None else why_ended(ended)
    facts = facts_of(store, cluster, str(row["namespace"]), str(row["name"]), now)
    if facts is None:
        return None
    if open_job not in found:
        return why_gathering(with_evidence(store, facts, from_item(Evidence, row)), job_id)
    facts, job = with_job(store, facts, job_id)
    return answered(store, shard, lambda views: why_job(views, facts, job))
