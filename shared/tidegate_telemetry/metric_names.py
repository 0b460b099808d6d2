"""Names and meanings of all metrics. Dashboards, alerts and tests use the names, so each is defined here once.

A test reads the sources and fails on a name that is missing here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]

ANSWER_BUCKETS_S: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Buckets for the API: from a look-up to a write that waits for its receipt during a take-over."""
LATENESS_BUCKETS_S: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.15,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    3600.0,
)
"""Buckets around the goals for messages (p50 25 ms, p99 150 ms), up to an outage of an hour."""
CALL_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Buckets for one store call: a millisecond within a region, at most the client's time-out of about 2 s."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; `tidegate_` is part of its name."""

    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = field(default=())


STORE_METRICS: Final[dict[str, Metric]] = {
    "tidegate_store_call_seconds": Metric("histogram", "One call to the store.", ("operation",), CALL_BUCKETS_S),
    "tidegate_store_call_failures_total": Metric("counter", "Store calls that failed, by code.", ("operation", "code")),
    "tidegate_store_units_total": Metric(
        "counter",
        "Read and write units of the store that this process consumed: as the store reports; for transactions computed from sizes.",
        ("operation", "table", "kind"),
    ),
}
"""Metrics of nodes and API: the API writes a run's start and end."""

TRANSACTION_METRICS: Final[dict[str, Metric]] = {
    "tidegate_open_transactions": Metric(
        "gauge",
        "Topic partitions that this process reads and where a producer has left a transaction open; later records are not read. Alert above 0 "
        "for tidegate's own topics; in a source's topic a long transaction may be normal.",
        ("topic",),
    ),
}
"""Metrics of every process that reads topics."""

NODE_METRICS: Final[dict[str, Metric]] = {
    "tidegate_launches_total": Metric(
        "counter", "Attempts that a launcher took, by its answer.", ("program", "answer")
    ),
    "tidegate_run_folders": Metric("gauge", "Attempts of programs whose folder with logs is on this host."),
    "tidegate_run_folders_bytes": Metric("gauge", "Size of these folders on the disk."),
    "tidegate_run_folders_removed_total": Metric("counter", "Folders of attempts that were removed."),
    "tidegate_fire_lateness_seconds": Metric(
        "histogram",
        "Hand-over minus the due instant: for messages at the broker's acknowledgement, for runs when the launcher took them. An instant that "
        "was past at its request, or when its schedule began, is due at that time.",
        ("plane",),
        LATENESS_BUCKETS_S,
    ),
    "tidegate_messages_delivered_total": Metric("counter", "Messages that a broker acknowledged; repeats count again."),
    "tidegate_records_not_produced_total": Metric(
        "counter", "Records that were not acknowledged; `guard` ones were not sent, the others are retried.", ("kind",)
    ),
    "tidegate_dead_letters_total": Metric(
        "counter",
        "Records copied to a dead-letter topic; `error_class` is `forbidden` for records about a namespace that is not "
        "their topic's.",
        ("topic", "error_class"),
    ),
    "tidegate_source_records_passed_total": Metric(
        "counter",
        "Records of sources' topics, or elements of their lists, that do not match the source: `where`, `tombstone`, or `empty` lists.",
        ("source", "reason"),
    ),
    "tidegate_dead_letters_refused_total": Metric("counter", "Dead letters that the broker refused.", ("topic",)),
    "tidegate_produce_refused_total": Metric(
        "counter", "Receipts and run records that the broker refused.", ("topic",)
    ),
    "tidegate_messages_refused_total": Metric("counter", "Deliveries that the broker refused."),
    "tidegate_shard_lags_total": Metric(
        "counter", "Loads that found messages more than 7 days late; alert when it grows."
    ),
    "tidegate_positions_gone_total": Metric("counter", "Stored positions that a log no longer held.", ("topic",)),
    "tidegate_fenced_total": Metric(
        "counter", "Times that a newer epoch ended this node's work for a topic partition."
    ),
    "tidegate_upstreams_deleted_total": Metric(
        "counter", "Schedules that lost a schedule that they waited for, because it was deleted."
    ),
    "tidegate_permits_stuck_total": Metric(
        "counter", "Permits of shared limits that were still held by ended runs; alert on any."
    ),
    "tidegate_timer_rows_missing_total": Metric(
        "counter", "Timer rows of schedules that were missing in the store and were written again."
    ),
    "tidegate_index_rows_missing_total": Metric(
        "counter",
        "Rows of schedules in the subscription index that were missing in the store and were written again; alert on any.",
    ),
    "tidegate_recurring_rows_missing_total": Metric(
        "counter", "Rows of recurring messages that were missing in the store and were written again; alert on any."
    ),
    "tidegate_definitions_missing_total": Metric(
        "counter", "Times that an active schedule was found without its definition; alert on any."
    ),
    "tidegate_occurrences_total": Metric(
        "counter",
        "Ledger entries by disposition; one entry may stand for several instants. Launched occurrences count when their run ends.",
        ("disposition", "reason"),
    ),
    "tidegate_retries_exhausted_total": Metric(
        "counter",
        "Runs that failed for good after all their tries, their 24 h or their submissions; alert when it grows.",
    ),
    "tidegate_loads_unknown_total": Metric(
        "counter", "Loads that could not be sampled while jobs waited for them; alert when it grows.", ("source",)
    ),
    "tidegate_catchup_expired_total": Metric(
        "counter",
        "Times that misfires were older than their schedule's catch-up window, so that no runs were created for them.",
    ),
    "tidegate_jobs_overdue_total": Metric(
        "counter", "Jobs that wait for their constraints beyond their schedule's pending time-out; alert when it grows."
    ),
    "tidegate_decisions_repeated_total": Metric(
        "counter", "Decisions made again, because their data had changed.", ("name",)
    ),
    "tidegate_decisions_failed_total": Metric(
        "counter", "Decisions set aside because they cannot be made; alert above 0.", ("name",)
    ),
    "tidegate_transactions_total": Metric(
        "counter",
        "Settled transactions: committed, refused, invalid, or unavailable (outcome unknown).",
        ("name", "verdict"),
    ),
    **STORE_METRICS,
    "tidegate_actor_failures_total": Metric("counter", "Bugs in the actor of a topic partition."),
    "tidegate_pokes_dropped_total": Metric(
        "counter", "Wake-ups that were not sent; each costs up to ten seconds of latency."
    ),
    "tidegate_rebalances_total": Metric("counter", "Times that the group gave or took topic partitions."),
    "tidegate_owned_topic_partitions": Metric("gauge", "Ownership topic partitions assigned to this node."),
    "tidegate_owned_shards": Metric("gauge", "Shards that belong to these topic partitions."),
    "tidegate_serving_shards": Metric("gauge", "Shards that are recovered and fire."),
    "tidegate_guard_holds": Metric(
        "gauge",
        "1 while the membership is proven and the map was read within a minute, so that irreversible actions are allowed.",
    ),
    "tidegate_nodes_silent_total": Metric("counter", "Other nodes that fell silent, as seen by this node."),
    "tidegate_silent_nodes": Metric(
        "gauge",
        "Other nodes that are silent, did not end cleanly and were not replaced: for at least 5 min, and until their shards have other owners.",
    ),
    "tidegate_promises_broken_total": Metric(
        "counter", "Promises of other nodes' shards that this node found broken.", ("promise",)
    ),
    "tidegate_broken_promises": Metric("gauge", "Promises that are broken now, of the shards that this node watches."),
    "tidegate_position_gone": Metric(
        "gauge",
        "Topic partitions that are stuck because the log does not hold their stored position; alert above 0.",
        ("topic",),
    ),
    **TRANSACTION_METRICS,
    "tidegate_clock_steps_total": Metric(
        "counter", "Steps of the machine's wall clock by more than 500 ms, which the node did not follow; alert on any."
    ),
    "tidegate_clock_offset_ms": Metric(
        "gauge",
        "Own clock minus the brokers', the certain part: 0 while they may be equal. Above 500 the node stops serving.",
    ),
    "tidegate_loop_lag_seconds": Metric("gauge", "Worst delay of the node's loop since the heartbeat before the last."),
    "tidegate_store_batch_room": Metric(
        "gauge", "Batch writes that may run concurrently now; fewer while the store answers too late."
    ),
    "tidegate_store_silence_seconds": Metric("gauge", "Seconds since the store last answered this process."),
}
"""All metrics of a node."""

API_METRICS: Final[dict[str, Metric]] = {
    "tidegate_api_requests_total": Metric("counter", "Answered HTTP requests.", ("method", "route", "status")),
    "tidegate_api_request_seconds": Metric("histogram", "Time to the answer.", ("method", "route"), ANSWER_BUCKETS_S),
    **STORE_METRICS,
    **TRANSACTION_METRICS,
    "tidegate_gate_answers_total": Metric("counter", "Answers of the start gate and to reports.", ("action", "answer")),
    "tidegate_api_receipt_seconds": Metric(
        "histogram", "Time from a request's arrival to its receipt.", ("status",), ANSWER_BUCKETS_S
    ),
    "tidegate_dead_letters_replayed_total": Metric("counter", "Records of dead letters produced again.", ("topic",)),
    "tidegate_api_pokes_total": Metric(
        "counter", "Wake-ups to shard owners; a lost one costs latency only.", ("outcome",)
    ),
}
"""All metrics of an API process."""

METRICS: Final[dict[str, Metric]] = {**NODE_METRICS, **API_METRICS}
"""All metrics; a process has those of its own table."""
