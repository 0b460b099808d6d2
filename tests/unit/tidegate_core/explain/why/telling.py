"""What `why` says on a bench: read as the API reads it, as one line for each reason."""

from __future__ import annotations

from tests.support.builders import HOUR
from tests.support.harness.actor_harness import ActorHarness
from tidegate_api.cluster_map import ClusterMap
from tidegate_api.reads.why import explain_job, explain_schedule
from tidegate_core.explain.why.reason import Explanation
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.shard.outages.outage_recorder import heartbeat_row

CLUSTER = ClusterMap(version=1, topic_partitions=1, shards=4)


def served(bench: ActorHarness) -> ActorHarness:
    """The node says that it is alive, as it does every 10 s; a bench has no such loop."""
    holding = bench.holding
    bench.store.write([heartbeat_row(holding.owner, holding.node, bench.now, {0: bench.now}, bench.now + HOUR)])
    return bench


def why(bench: ActorHarness, at: str | int | None = None, *, name: str = "nightly") -> Explanation:
    """Asks about a schedule; `at` as people write it, or an instant."""
    text = format_instant(at) if isinstance(at, int) else at
    found = explain_schedule(bench.store, CLUSTER, "flights", name, text, bench.now)
    assert found is not None
    return found


def why_job(bench: ActorHarness, job_id: str | None = None) -> Explanation:
    """Asks about a job; the only one unless it is named."""
    wanted = job_id or the_jobs(bench)[0].id
    found = explain_job(bench.store, CLUSTER, shard_of_run(wanted), wanted, bench.now)
    assert found is not None
    return found


def the_jobs(bench: ActorHarness) -> list[Job]:
    found = [from_item(Job, row) for row in bench.rows("J#")]
    return sorted(found, key=lambda job: (job.satisfied_at, job.nominal, job.id))


def told(explanation: Explanation) -> list[str]:
    """Returns `<code> [until]: <text>` of each reason."""
    return [
        f"{each.code}{f' [{format_instant(each.until)}]' if each.until is not None else ''}: {each.text}"
        for each in explanation.reasons
    ]
