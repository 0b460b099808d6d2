"""Names and meanings of all log events. Dashboards, alerts and tests use the names, so each is defined here once.

The core's notices and the adapters' are log events too. A test reads the sources and fails on a name that is missing
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Level: TypeAlias = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One named event.

    Attributes:
        help: What happened, and what to do about it, if anything.
        level: `debug` is normal work, `info` rare and normal; `warning` needs no action; `error` needs an operator.
        counted: Counter that the event increases.
        labels: Fields of the event that become the counter's labels.
        amount: Field of the event with the increase; None increases by one.
    """

    help: str
    level: Level = "info"
    counted: str | None = None
    labels: tuple[str, ...] = ()
    amount: str | None = None


_CANCEL_OUT_OF_REACH: Final = LogEvent(
    "The program of an attempt was not started on this host, so there is nothing to end here. If it runs on another host "
    "(`host`, if known), a node of that host has to end it."
)
"""The owner logs it if another host's launcher started the driver. This host's launcher logs it if it started none."""

CORE_NOTICES: Final[dict[str, LogEvent]] = {
    "cancel_out_of_reach": _CANCEL_OUT_OF_REACH,
    "serving": LogEvent("All shards of a topic partition are fenced and recovered; it fires from now on."),
    "fenced": LogEvent(
        "A newer epoch exists: this node's work for the topic partition ends, and it proves its membership.",
        "warning",
        "tidegate_fenced_total",
    ),
    "outranked": LogEvent(
        "An owner with a newer map or epoch exists; the node checks its assignment again.", "warning"
    ),
    "schema_refused": LogEvent(
        "The store has, or will have, a format version that this release does not read; the node takes no shard over.",
        "error",
    ),
    "not_a_member": LogEvent(
        "The group coordinator no longer counts this node as a member; the node drops its work.", "warning"
    ),
    "topic_read": LogEvent("A topic partition of the events topic, or of a source's topic, is read from now on."),
    "topic_left": LogEvent(
        "A topic partition of events or of a source is no longer read: no source names its topic, or it was recreated."
    ),
    "topic_made_anew": LogEvent(
        "Records came from another topic of the same name: nothing more is read at the old topic's position.",
        "warning",
    ),
    "position_gone": LogEvent(
        "The owner of a topic partition learned that the stored position is gone; `reading_stands_still` says what to do.",
        "warning",
        "tidegate_positions_gone_total",
        ("topic",),
    ),
    "record_dead_lettered": LogEvent(
        "A record could not be used. It was copied to the dead-letter topic, with the reason in its headers.",
        "warning",
        "tidegate_dead_letters_total",
        ("topic", "error_class"),
    ),
    "source_records_passed": LogEvent(
        "Records of a source's topic, or elements of their lists, do not match the source: they become neither events nor dead letters. "
        "`reason` is `where`, `tombstone`, or `empty` for a list without elements.",
        "debug",
        "tidegate_source_records_passed_total",
        ("source", "reason"),
        "passed",
    ),
    "dead_letter_refused": LogEvent(
        "The broker refuses even the dead letter (size, access, or missing topic). Later records go on; after 10 minutes only this line remains.",
        "error",
        "tidegate_dead_letters_refused_total",
        ("topic",),
    ),
    "page_halved": LogEvent(
        "A page of what a request ends was too large, or one row on it cannot be processed; the request goes on with half as many.",
        "warning",
    ),
    "produce_refused": LogEvent(
        "The broker refuses a receipt or run record as it is; its content is in the store all the same.",
        "error",
        "tidegate_produce_refused_total",
        ("topic",),
    ),
    "not_submitted": LogEvent("The launcher could not take an attempt now; it is submitted again.", "warning"),
    "transaction_refused": LogEvent(
        "A decision was based on data that has changed since; it is made again.",
        "debug",
        "tidegate_decisions_repeated_total",
        ("name",),
    ),
    "decision_failed": LogEvent(
        "One decision about a schedule, run or record cannot be made: a bug, or data that has outgrown the store. The decision is set aside "
        "and retried every ten minutes, and a request is answered with `rejected`; all other work goes on. Report it.",
        "error",
        "tidegate_decisions_failed_total",
        ("name",),
    ),
    "upstream_deleted": LogEvent(
        "A schedule was deleted that another schedule waits for. The waiting trigger does without it; if it cannot (`ended`), the waiting "
        "schedule is deleted too. Apply it again if it is to wait for a new schedule of that name.",
        "warning",
        "tidegate_upstreams_deleted_total",
    ),
    "permit_stuck": LogEvent(
        "A run that has ended still holds a permit of a shared limit, and other jobs wait for it. The permit is never freed automatically: "
        "report it, and remove it from the limit's item by hand once the program has certainly ended.",
        "error",
        "tidegate_permits_stuck_total",
    ),
    "timer_row_missing": LogEvent(
        "A schedule's timer row was missing and was written again; without it the schedule would not have fired. The store was changed by "
        "hand or restored in part; otherwise report it.",
        "error",
        "tidegate_timer_rows_missing_total",
    ),
    "index_row_missing": LogEvent(
        "A schedule's row in the subscription index was missing and was written again. Events for that leaf did not count until now. The "
        "store was changed by hand or restored in part; otherwise report it.",
        "error",
        "tidegate_index_rows_missing_total",
    ),
    "recurring_row_missing": LogEvent(
        "A recurring message's record (row `C`) or its wake row (row `D`) was missing and was written again; without it the message would "
        "not have been sent. Fires that fell due after a take-over and before the repair are not sent. The store was changed by hand or "
        "restored in part; otherwise report it.",
        "error",
        "tidegate_recurring_rows_missing_total",
    ),
    "definition_missing": LogEvent(
        "The definition of an active schedule's version is missing, so the schedule's work is unknown. Apply it again with a change, "
        "or delete it.",
        "error",
        "tidegate_definitions_missing_total",
    ),
    "occurrence_did_not_run": LogEvent(
        "An occurrence was skipped or expired; `reason` and `detail` say why (docs/reasons.md). `tidegate occurrence list` and `why` show it too.",
        "info",
        "tidegate_occurrences_total",
        ("disposition", "reason"),
    ),
    "occurrence_ended": LogEvent(
        "Any other ledger entry: a run has ended, or a request or another job took the occurrence's place.",
        "debug",
        "tidegate_occurrences_total",
        ("disposition", "reason"),
    ),
    "retries_exhausted": LogEvent(
        "A run failed for good although its schedule's `retry`, or the launcher's, covers its error; `why` says which allowance is used "
        "up. Its record is on `tidegate.runs.dlq` as well.",
        "warning",
        "tidegate_retries_exhausted_total",
    ),
    "run_released": LogEvent(
        "An operator released a lost run (`run.release`); `reason` says who and why. Its permits are returned, and its schedule's "
        "`retry` decides about a further attempt.",
        "warning",
    ),
    "load_unknown": LogEvent(
        "A load that jobs wait for cannot be sampled; `problem` says why. Logged once, when it begins. After 5 minutes jobs start "
        "without it, unless their constraint is `strict`.",
        "warning",
        "tidegate_loads_unknown_total",
        ("source",),
    ),
    "job_waits_too_long": LogEvent(
        "A job has waited for its constraints longer than its schedule's `pending_timeout`, and goes on waiting, because "
        "`pending_timeout_action` is `alert`. `unmet` names its blockers.",
        "warning",
        "tidegate_jobs_overdue_total",
    ),
    "source_topic_silent": LogEvent(
        "The brokers reported no ends of a source's topic for 5 seconds, for example because a topic partition has no leader. A request on "
        "the source is refused; other requests and time-outs go on without it.",
        "warning",
    ),
    "message_refused": LogEvent(
        "The broker refuses a message as it is; it is retried later, and in the end becomes a dead letter.",
        "warning",
        "tidegate_messages_refused_total",
    ),
    "outage": LogEvent(
        "No node served the shard from `begin` to `end` (ms since the epoch); catch-up and time-outs follow from it.",
        "warning",
    ),
    "catchup_expired": LogEvent(
        "Misfires of a schedule are older than its catch-up window: no runs are created for them "
        "(`expired/catchup_window` in the ledger).",
        "error",
        "tidegate_catchup_expired_total",
    ),
    "recurring_not_sent": LogEvent(
        "Occurrences of a recurring message from `first` to `last` were late and are not sent: `expire_after` had passed, or they fell "
        "into an outage and `catchup` excludes those.",
        "warning",
    ),
    "shard_lags": LogEvent(
        "Messages of a shard are more than 7 days late; their rows are written again before they expire. Find out why no node "
        "served the shard.",
        "error",
        "tidegate_shard_lags_total",
    ),
    "refused_versions_full": LogEvent(
        "A message key's fence covers 100 refused repeats and takes no more. A repeat of a request whose first owner died may "
        "then be delivered in addition.",
        "warning",
    ),
    "message_row_missing": LogEvent(
        "A message's timer row has no message row: its payload expired or was removed by hand. Nothing is delivered.",
        "error",
    ),
}
"""Events of the core's `Notice` effects."""

KAFKA_NOTICES: Final[dict[str, LogEvent]] = {
    "former_life_awaited": LogEvent(
        "This process crashed and restarted at once. It joined its group `waited_ms` later, when its former session was about to end, so that "
        "the other members' leases outlast the rebalance.",
        "info",
    ),
    "kafka_client_failed": LogEvent("A Kafka client failed and is recreated.", "error"),
    "kafka_client_renewed": LogEvent(
        "A topic that a Kafka client reads was recreated (`topic`). A new client that never knew the former topic replaces it; a group "
        "member hands over first.",
        "warning",
    ),
    "kafka_consumer_error": LogEvent("A consumer reports an error; it recovers without help.", "warning"),
    "kafka_drain_cut": LogEvent("A drain was not finished in time; the successor finishes it.", "warning"),
    "kafka_left_without_goodbye": LogEvent(
        "This member could not tell the group that it leaves; its share moves once the session has ended.", "warning"
    ),
    "kafka_topic_unknown": LogEvent(
        "The brokers did not tell which topic records lie in; the records wait.", "warning"
    ),
    "kafka_reading_restarted": LogEvent(
        "The client had read nothing of a topic partition for half a minute although there was more (`offset`); the reading was restarted.",
        "warning",
    ),
    "kafka_records_not_taken": LogEvent(
        "Records of a topic could not be handed on (`reason`): a bug. The hand-over is retried four times a second, and later records of "
        "the topic wait.",
        "error",
    ),
    "kafka_probe_refused": LogEvent("The group coordinator refused a membership probe.", "warning"),
    "kafka_producer_dropped": LogEvent(
        "A producer was purged: the membership lease lapsed, or its client failed.", "warning"
    ),
    "kafka_thread_stuck": LogEvent("A Kafka client did not close in time; the process ends without it.", "warning"),
}
"""Events of the Kafka adapter."""

TRANSACTION_EVENTS: Final[dict[str, LogEvent]] = {
    "transaction_open": LogEvent(
        "A producer has left a transaction open in one of tidegate's topics that this process reads; no record after its first one is read. "
        "The message names that record, and `command` aborts the transaction; docs/operations.md says how to find the producer.",
        "error",
    ),
    "source_transaction_open": LogEvent(
        "A producer has left a transaction open in a source's topic. A long transaction may be normal there; its records are read once it is "
        "over. Fields as for `transaction_open`.",
        "warning",
    ),
    "transaction_over": LogEvent(
        "A reported open transaction was committed or aborted, or another process reads its topic partition."
    ),
}
"""Events of nodes and API processes about topics that they read."""

NODE_EVENTS: Final[dict[str, LogEvent]] = {
    "drain_cut": LogEvent(
        "A hand-over was not finished in time: the successor finishes it, and may send the last messages again.",
        "warning",
    ),
    "node_starting": LogEvent("The process begins, with its owner id, its version and the addresses of its bricks."),
    "take_over_bound": LogEvent(
        "Logged once at start: at most `take_over_ms` after a node's death another node gets its topic partitions. The session is "
        "this node's own setting (group protocol `classic`), or the group's or the brokers' (`consumer`); `said_by` names its source. "
        "`assumed` means that this node may not read it and takes Kafka's default. `guard_ms` is the longest time for which "
        "irreversible actions may outlast the last proof of membership."
    ),
    "node_started": LogEvent("All checks have passed; the node joins the group."),
    "node_stopping": LogEvent(
        "The node begins to stop (a signal, too many bugs, a wrong clock): topic partitions are drained and given away."
    ),
    "node_stopped": LogEvent("All clients and tasks are closed; running programs go on."),
    "worker_ended": LogEvent(
        "With `--workers`: one of the node processes has ended with that status. It is started again, except after 78 "
        "(settings), which ends all of them.",
        "warning",
    ),
    "worker_not_started": LogEvent(
        "With `--workers`: the system did not start one of the node processes (no room for one more, or its interpreter is being "
        "replaced). It is also logged as ended with status 71, and is tried again.",
        "error",
    ),
    "node_refused": LogEvent("The node refuses to serve in the present state; the message says what to do.", "error"),
    **TRANSACTION_EVENTS,
    "reading_stands_still": LogEvent(
        "A log no longer holds the stored position (retention removed it, or the log was truncated). Records were lost. "
        "Nothing more is skipped, and this topic partition is not read. The message names the item and the offsets; "
        "docs/operations.md says how to decide.",
        "error",
    ),
    "waiting_for": LogEvent("A brick does not answer; the node asks again.", "warning"),
    "topic_differs": LogEvent("A topic differs from the plan, safely; check whether that is intended.", "warning"),
    "assigned": LogEvent("Kafka gave topic partitions to this node; it takes their shards over.", "info"),
    "beyond_the_map": LogEvent(
        "Kafka gave topic partitions that are newer than the cluster's map; they are served as soon as the map contains them.",
        "info",
    ),
    "map_grown": LogEvent(
        "The requests topic has more topic partitions than the map, or was recreated; the map follows.", "info"
    ),
    "map_followed": LogEvent(
        "A newer map is in force: this node hands its share over, and takes over the share of the new map.",
        "info",
    ),
    "requests_made_anew": LogEvent(
        "The requests topic was deleted and recreated, and the map cannot follow; the message says why. The topic is not read.",
        "error",
    ),
    "revoked": LogEvent("Topic partitions go to another node; they are drained."),
    "drained": LogEvent("A topic partition has no outstanding work any more."),
    "lost": LogEvent("Topic partitions may have another owner already; all their work is dropped.", "warning"),
    "actor_failed": LogEvent(
        "A bug: the actor of a topic partition raised. It is rebuilt from the store; more than five in a minute end the process.",
        "error",
        "tidegate_actor_failures_total",
    ),
    "actor_ended": LogEvent("The actor of a topic partition ended without an order.", "info"),
    "task_failed": LogEvent("A bug: a background task raised. It is started again.", "error"),
    "cancel_failed": LogEvent("The launcher could not end a program now; it is tried again.", "warning"),
    "cancel_out_of_reach": _CANCEL_OUT_OF_REACH,
    "watch_failed": LogEvent("The launcher could not tell whether a program has ended; it is asked again.", "warning"),
    "poke_unreadable": LogEvent("A record on the wake-up topic is not tidegate's; it is skipped.", "warning"),
    "node_overloaded": LogEvent(
        "This node's loop has been late for long and another node's has not: it hands its share over. Check the other load on its machine.",
        "warning",
    ),
    "node_at_ease": LogEvent("The overload has been over for a while; the node takes a share again.", "info"),
    "clock_agreed": LogEvent("This node's clock is close enough to the brokers': it joins its group.", "info"),
    "clock_off": LogEvent(
        "This machine's clock differs from the brokers' by more than is safe; the node hands everything over and ends. "
        "Repair its time synchronisation.",
        "error",
    ),
    "clock_stepped": LogEvent(
        "This machine's wall clock stepped, or stepped back (0): it is `machine_ahead_ms` ahead of the time that the node keeps using. "
        "If the brokers agree with the machine, `clock_off` follows within seconds. Check its time synchronisation.",
        "warning",
        "tidegate_clock_steps_total",
    ),
    "store_out_of_reach": LogEvent(
        "Only this node cannot reach the store: it leaves the group until the store answers it again.", "error"
    ),
    "node_drained": LogEvent("An operator drained this node: it hands all its topic partitions over in order."),
    "node_outdated": LogEvent(
        "`tidegate migrate --finish` ran while this node was frozen, and its release cannot read the new format: "
        "it gives its share back and ends (78).",
        "error",
    ),
    "run_folders_removed": LogEvent(
        "Folders of attempts that ended long ago were removed with their logs, or earlier because room was needed."
    ),
    "run_folders_full": LogEvent(
        "The folders of runs exceed `launcher.keep_runs_bytes`, and none of them may be removed: their runs go on, or their owners may not "
        "have seen the end, because the store has not answered for an hour after it. Let programs write large data elsewhere, or raise "
        "the disk and the setting.",
        "warning",
    ),
    "programs_awaited": LogEvent(
        "The node has ended, and programs of its host go on. They have `wait_s` to end; none if the node ended without an order."
    ),
    "programs_told_to_end": LogEvent(
        "Programs ran longer than the ending node waits for them. They get SIGTERM and report it. Runs that have passed "
        "the gate fail with `terminated`, and `retry` decides about a further attempt.",
        "warning",
    ),
    "programs_left": LogEvent(
        "The node ends while programs go on. If they cannot outlive it, their runs will be `lost`.", "error"
    ),
    "node_takes_again": LogEvent("The drain order is gone; the node joins the group."),
    "node_silent": LogEvent(
        "Another node has been silent for 25 s and did not end cleanly: it died, is frozen, or cannot reach the store. Logged "
        "once by each node that sees it.",
        "error",
        "tidegate_nodes_silent_total",
    ),
    "promise_broken": LogEvent(
        "A shard of another node is stuck: `promise` names the broken promise, `since` when it was due (docs/operations.md). Logged once.",
        "error",
        "tidegate_promises_broken_total",
        ("promise",),
    ),
    "promise_kept_again": LogEvent("A shard that was stuck moves again.", "info"),
    "store_back": LogEvent("The store answers again; the node joins the group."),
    "health_listening": LogEvent("The address of /livez, /readyz, /rolloutz and /metrics."),
    "settings_refused": LogEvent("The settings are invalid; the message names them.", "error"),
    "client_said": LogEvent("A line of a library's own log.", "info"),
}
"""Events of the node."""

API_EVENTS: Final[dict[str, LogEvent]] = {
    "api_bug": LogEvent("An unexpected error; the traceback follows. Report it.", "error"),
    "api_request": LogEvent("A request was answered; probes are left out."),
    "dead_letter_replayed": LogEvent(
        "A user had the record of a dead letter produced again, to its original topic.",
        "info",
        "tidegate_dead_letters_replayed_total",
        ("topic",),
    ),
    "dead_letter_dropped": LogEvent("A user marked a dead letter as needing no action.", "info"),
    "receipt_not_understood": LogEvent(
        "A record on the receipts topic is not tidegate's, or a newer node's.", "warning"
    ),
    "receipts_not_readable": LogEvent(
        "The broker does not report where the receipts end; it is asked again, and writes wait.", "warning"
    ),
    **TRANSACTION_EVENTS,
    "receipts_position_gone": LogEvent(
        "Receipts were removed before they were read. Reading goes on at the end, and waiting requests read the store.",
        "warning",
    ),
    "stop_handed_over": LogEvent(
        "An open transaction keeps nodes from reading a suspend, so this process has written it to its shard; the nodes' logs have `transaction_open`."
    ),
    "run_finished": LogEvent("A program reported its end."),
    "run_started": LogEvent("A program passed the start gate."),
}
"""Events of the API."""

LOG_EVENTS: Final[dict[str, LogEvent]] = {**CORE_NOTICES, **KAFKA_NOTICES, **NODE_EVENTS, **API_EVENTS}
