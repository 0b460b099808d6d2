"""The names of all log events: dashboards, alerts and tests use them, so each stands here once, with its meaning.

The core's notices and the adapters' are log events as well. A test reads the sources and fails on a name that is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Level: TypeAlias = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One named event.

    Attributes:
        help: What happened, and what to do about it where there is something to do.
        level: `debug` is normal work, `info` rare and normal, `warning` heals by itself, `error` wants somebody's eyes.
        counted: Counter that each such event adds one to.
        labels: Fields of the event that become the counter's labels.
        amount: Field of the event that says how many it adds instead of one.
    """

    help: str
    level: Level = "info"
    counted: str | None = None
    labels: tuple[str, ...] = ()
    amount: str | None = None


_CANCEL_OUT_OF_REACH: Final = LogEvent(
    "The program of an attempt was not started on this host, so there is nothing to end here. If it runs, then on "
    "another host (`host`, where that is known), and a node of that host has to end it."
)
"""The owner says so where another host's launcher started the driver, and the launcher of this host where it started none."""

CORE_NOTICES: Final[dict[str, LogEvent]] = {
    "cancel_out_of_reach": _CANCEL_OUT_OF_REACH,
    "serving": LogEvent("All shards of a topic partition are fenced and recovered; it fires from now on."),
    "fenced": LogEvent(
        "A newer epoch exists: what this node did for the topic partition ends, and it proves its membership.",
        "warning",
        "tidegate_fenced_total",
    ),
    "outranked": LogEvent("A holder with a newer map or epoch exists; the node looks again.", "warning"),
    "schema_refused": LogEvent(
        "The store is written in a version that this release does not read, or will be; the node takes nothing over.",
        "error",
    ),
    "not_a_member": LogEvent(
        "The group coordinator does not know this member any more; everything is dropped.", "warning"
    ),
    "topic_read": LogEvent(
        "A topic partition of the events topic, or of one that a source names, is read from here on."
    ),
    "topic_left": LogEvent("Such a one is not read any more: no source names its topic, or the topic was made anew."),
    "topic_made_anew": LogEvent(
        "Records came that lie in another topic of the same name: nothing more is read for the old one's position.",
        "warning",
    ),
    "position_gone": LogEvent(
        "The logic of a topic partition was told that its position is gone; `reading_stands_still` says what to do.",
        "warning",
        "tidegate_positions_gone_total",
        ("topic",),
    ),
    "record_dead_lettered": LogEvent(
        "A record could not be used and lies on the dead-letter topic, with the reason in its headers.",
        "warning",
        "tidegate_dead_letters_total",
        ("topic", "error_class"),
    ),
    "source_records_passed": LogEvent(
        "Records of a source's topic, or elements of their lists, are not meant for the source: no events, and no dead letters. `reason` is "
        "`where`, `tombstone`, or `empty` for a list without elements.",
        "debug",
        "tidegate_source_records_passed_total",
        ("source", "reason"),
        "passed",
    ),
    "dead_letter_refused": LogEvent(
        "The broker takes not even the dead letter (its size, access, or no such topic): what follows goes on; after 10 minutes only this line tells.",
        "error",
        "tidegate_dead_letters_refused_total",
        ("topic",),
    ),
    "page_halved": LogEvent(
        "A page of what a request ends was too large, or one thing on it is to blame: it goes on with half as many.",
        "warning",
    ),
    "produce_refused": LogEvent(
        "The broker will not take a receipt or run record as it is; what it says is in the store all the same.",
        "error",
        "tidegate_produce_refused_total",
        ("topic",),
    ),
    "not_submitted": LogEvent("The launcher could not take an attempt now; it is submitted again.", "warning"),
    "transaction_refused": LogEvent(
        "A decision was made from something that had changed meanwhile; it is made again.",
        "debug",
        "tidegate_decisions_repeated_total",
        ("name",),
    ),
    "decision_failed": LogEvent(
        "A bug, or something that outgrew the store: one decision about one schedule, run or record cannot be made. It is set "
        "aside and tried again every ten minutes, a request is answered with `rejected`; everything else goes on. Report it.",
        "error",
        "tidegate_decisions_failed_total",
        ("name",),
    ),
    "upstream_deleted": LogEvent(
        "A schedule that another one waits for was deleted: that one's trigger does without it, or, where it cannot (`ended`), the "
        "schedule is deleted as well. Apply it again if it is to wait for what comes under that name.",
        "warning",
        "tidegate_upstreams_deleted_total",
    ),
    "permit_stuck": LogEvent(
        "A permit of a shared limit is held by a run that is not open any more, while others wait for it. It is never freed "
        "by itself: report it, and take it out of the limit's item by hand once it is certain that the program has ended.",
        "error",
        "tidegate_permits_stuck_total",
    ),
    "timer_row_missing": LogEvent(
        "A schedule's timer row was not there, and was written anew: it would not have fired again. Somebody has changed the "
        "store by hand or restored a part of it; else report it.",
        "error",
        "tidegate_timer_rows_missing_total",
    ),
    "index_row_missing": LogEvent(
        "A schedule's row in the index of events was not there, and was written anew: it heard nothing of that leaf, and what came "
        "meanwhile has not counted. Somebody has changed the store by hand or restored a part of it; else report it.",
        "error",
        "tidegate_index_rows_missing_total",
    ),
    "recurring_row_missing": LogEvent(
        "A recurring message's record (row `C`), or the row that brings it near (row `D`), was not there, and was written anew: it "
        "would not have been sent again. What fell due after a take-over meanwhile is not sent. Somebody has changed the store by hand or "
        "restored a part of it; else report it.",
        "error",
        "tidegate_recurring_rows_missing_total",
    ),
    "definition_missing": LogEvent(
        "The definition of an active schedule's version is not there: what it does cannot be known. Apply it again, changed, "
        "or delete it.",
        "error",
        "tidegate_definitions_missing_total",
    ),
    "occurrence_did_not_run": LogEvent(
        "An occurrence was skipped or has expired: `reason` and `detail` say why (docs/reasons.md). `tidegate occurrence list` and `why` have it as well.",
        "info",
        "tidegate_occurrences_total",
        ("disposition", "reason"),
    ),
    "occurrence_ended": LogEvent(
        "Any other entry of the ledger: a run has ended, or a request or another job took the occurrence's place.",
        "debug",
        "tidegate_occurrences_total",
        ("disposition", "reason"),
    ),
    "retries_exhausted": LogEvent(
        "A run that its schedule's `retry`, or the launcher's, would have tried again has failed for good; `why` says what is used "
        "up. Its record is on `tidegate.runs.dlq` as well.",
        "warning",
        "tidegate_retries_exhausted_total",
    ),
    "run_released": LogEvent(
        "Somebody has released a lost run (`run.release`); `reason` says who, and why. Its permits are given back, and its schedule's "
        "`retry` says whether a further attempt follows.",
        "warning",
    ),
    "load_unknown": LogEvent(
        "A load that jobs wait for cannot be sampled; `problem` says why. Told once, when it begins: 5 minutes later jobs go "
        "without it, unless their constraint is `strict`.",
        "warning",
        "tidegate_loads_unknown_total",
        ("source",),
    ),
    "job_waits_too_long": LogEvent(
        "A job has waited for its constraints longer than its schedule's `pending_timeout`, and goes on waiting: its "
        "`pending_timeout_action` is `alert`. `unmet` says what stands in its way.",
        "warning",
        "tidegate_jobs_overdue_total",
    ),
    "source_topic_silent": LogEvent(
        "The brokers told no ends of a source's topic for 5 seconds, as while a topic partition has no leader: a request on the source is "
        "refused, other requests and time-outs go on without it.",
        "warning",
    ),
    "message_refused": LogEvent(
        "The broker will not take a message as it is; it is tried again later, then it is a dead letter.",
        "warning",
        "tidegate_messages_refused_total",
    ),
    "outage": LogEvent(
        "Nobody served the shard from `begin` to `end` (ms since the epoch): a fact that catch-up and time-outs follow.",
        "warning",
    ),
    "catchup_expired": LogEvent(
        "Instants of a schedule were missed for longer than its catch-up window: they are not made up for "
        "(`expired/catchup_window` in the ledger).",
        "error",
        "tidegate_catchup_expired_total",
    ),
    "recurring_not_sent": LogEvent(
        "Occurrences of a recurring message, from `first` to `last`, were late and are not sent: `expire_after` had passed, or they fell "
        "into an outage and its `catchup` says none.",
        "warning",
    ),
    "shard_lags": LogEvent(
        "Messages of a shard are more than 7 days late: their rows are written again before they expire. Look why nobody "
        "served the shard.",
        "error",
        "tidegate_shard_lags_total",
    ),
    "refused_versions_full": LogEvent(
        "A message key's guard covers 100 refused repeats and takes no more: a repeat of a request, whose first reader fell, may "
        "be delivered beside it.",
        "warning",
    ),
    "message_row_missing": LogEvent(
        "A message's timer row has no message row: its payload expired or was removed by hand. Nothing is delivered.",
        "error",
    ),
}
"""What the core's `Notice` effects are called."""

KAFKA_NOTICES: Final[dict[str, LogEvent]] = {
    "former_life_awaited": LogEvent(
        "This process fell and came back at once: it joined its group when less was left of its former session than of the others' guards, "
        "`waited_ms` later.",
        "info",
    ),
    "kafka_client_failed": LogEvent("A Kafka client failed and is made anew.", "error"),
    "kafka_client_renewed": LogEvent(
        "A topic that a Kafka client reads was made anew (`topic`): the client is replaced by one that never knew the former topic, behind a "
        "hand-over where it is a member of the group.",
        "warning",
    ),
    "kafka_consumer_error": LogEvent("A consumer reports an error; it goes on by itself.", "warning"),
    "kafka_drain_cut": LogEvent("A drain was not finished in time; the successor finishes it.", "warning"),
    "kafka_left_without_goodbye": LogEvent(
        "The group could not be told that this member leaves; its share moves once the session has run out.", "warning"
    ),
    "kafka_topic_unknown": LogEvent("The brokers could not be asked in which topic records lie; they wait.", "warning"),
    "kafka_reading_restarted": LogEvent(
        "The client had brought nothing of a topic partition for half a minute although there was more (`offset`); it was asked again.",
        "warning",
    ),
    "kafka_records_not_taken": LogEvent(
        "What was read of a topic could not be handed on (`reason`): a bug. It is tried again four times a second, and what comes after it "
        "on that topic waits.",
        "error",
    ),
    "kafka_probe_refused": LogEvent("The group coordinator refused a membership probe.", "warning"),
    "kafka_producer_dropped": LogEvent("A producer was purged: the guard lapsed, or its client failed.", "warning"),
    "kafka_thread_stuck": LogEvent("A Kafka client did not close in time; the process ends without it.", "warning"),
}
"""What the Kafka adapter reports."""

TRANSACTION_EVENTS: Final[dict[str, LogEvent]] = {
    "transaction_open": LogEvent(
        "A producer has left a transaction open in one of tidegate's topics that this process reads; nothing behind its first record is read. The message names "
        "that record, `command` aborts the transaction; docs/operations.md says how to find the producer.",
        "error",
    ),
    "source_transaction_open": LogEvent(
        "The same in a source's topic, where a long transaction may be its producer's normal work: its records are read when it is over. Fields "
        "as of `transaction_open`.",
        "warning",
    ),
    "transaction_over": LogEvent(
        "Such a transaction was committed or aborted, or another process reads its topic partition."
    ),
}
"""What nodes and API processes log about topics that they read."""

NODE_EVENTS: Final[dict[str, LogEvent]] = {
    "drain_cut": LogEvent(
        "A hand-over was not finished in time: the successor finishes it, and may send again what was sent last.",
        "warning",
    ),
    "node_starting": LogEvent("The process begins, with its owner id, version and where its bricks are."),
    "take_over_bound": LogEvent(
        "Once at start: at most `take_over_ms` after a node died, another one is given its topic partitions. The session is "
        "this node's own setting (group protocol `classic`), or the group's or the brokers' (`consumer`); `said_by` names it, "
        "`assumed` means that this node may not read it and takes Kafka's default. `guard_ms` is how long nothing "
        "irreversible outlasts the last proof of membership."
    ),
    "node_started": LogEvent("Everything is checked; the node joins the group."),
    "node_stopping": LogEvent(
        "The end begins (a signal, too many bugs, a clock that is off): topic partitions are drained and given away."
    ),
    "node_stopped": LogEvent("Everything is closed; running programs go on."),
    "worker_ended": LogEvent(
        "With `--workers`: one of the node processes has ended by itself, with that status; it is started again, but after 78 "
        "(settings), which ends all of them.",
        "warning",
    ),
    "worker_not_started": LogEvent(
        "With `--workers`: the system did not start one of the node processes (no room for one more, its interpreter is being "
        "replaced); told as ended with status 71 as well, and tried again.",
        "error",
    ),
    "node_refused": LogEvent("The node does not serve as things are; the message says what to do.", "error"),
    **TRANSACTION_EVENTS,
    "reading_stands_still": LogEvent(
        "A log does not hold the stored position any more (retention passed it, or the log was cut). Records were lost; "
        "nothing more is skipped, nothing of this topic partition is read. The message names the item and the offsets; "
        "docs/operations.md says how to decide.",
        "error",
    ),
    "waiting_for": LogEvent("A brick does not answer yet; the node asks again.", "warning"),
    "topic_differs": LogEvent("A topic is not as planned; nothing unsafe, but look whether it is meant so.", "warning"),
    "assigned": LogEvent("Kafka gave topic partitions to this node; their shards are taken over.", "info"),
    "beyond_the_map": LogEvent(
        "Kafka gave topic partitions that are newer than the cluster's map; they are served once the map has followed, in a moment.",
        "info",
    ),
    "map_grown": LogEvent(
        "The requests topic has more topic partitions than the map says, or was made anew; the map follows.", "info"
    ),
    "map_followed": LogEvent(
        "A newer map is in force: this node hands over what it holds, and takes over what follows from that map.",
        "info",
    ),
    "requests_made_anew": LogEvent(
        "The requests topic was deleted and made again, and the map cannot follow; the message says why. Nothing of it is read.",
        "error",
    ),
    "revoked": LogEvent("Topic partitions go to another node; they are drained."),
    "drained": LogEvent("Nothing of a topic partition is in flight any more."),
    "lost": LogEvent("Topic partitions may have another owner already; everything of them is dropped.", "warning"),
    "actor_failed": LogEvent(
        "A bug: the logic of a topic partition raised. It is built anew from the store; more than five in a minute end the process.",
        "error",
        "tidegate_actor_failures_total",
    ),
    "actor_ended": LogEvent("The logic of a topic partition ended by itself.", "info"),
    "task_failed": LogEvent("A bug: a background task raised. It is begun again.", "error"),
    "cancel_failed": LogEvent("The launcher could not end a program now; it is tried again.", "warning"),
    "cancel_out_of_reach": _CANCEL_OUT_OF_REACH,
    "watch_failed": LogEvent("The launcher could not say whether a program is gone; it is asked again.", "warning"),
    "poke_unreadable": LogEvent("A record on the pokes topic is none of ours; it is passed.", "warning"),
    "node_overloaded": LogEvent(
        "This node's loop has been late for long and another node's is not: it hands its share over. Look at what else its machine does.",
        "warning",
    ),
    "node_at_ease": LogEvent("It has been at ease for a while and takes a share again.", "info"),
    "clock_agreed": LogEvent("This node's clock is close enough to the brokers': it joins its group.", "info"),
    "clock_off": LogEvent(
        "This machine's clock differs from the brokers' by more than is safe; the node gives everything up and ends. "
        "Repair its time synchronisation.",
        "error",
    ),
    "clock_stepped": LogEvent(
        "This machine's wall clock stepped, or stepped back (0): it is `machine_ahead_ms` ahead of the time by which the node goes on. "
        "Where the brokers say that the machine is right, `clock_off` follows within seconds. Look at its time synchronisation.",
        "warning",
        "tidegate_clock_steps_total",
    ),
    "store_out_of_reach": LogEvent(
        "Only this node cannot reach the store: it leaves the group until the store answers it again.", "error"
    ),
    "node_drained": LogEvent("An operator wants this node to hold nothing: what it holds is handed over in order."),
    "node_outdated": LogEvent(
        "`tidegate migrate --finish` took place while this node stood still, and its release cannot read what is written since: "
        "it gives everything back and ends (78).",
        "error",
    ),
    "run_folders_removed": LogEvent(
        "Folders of attempts that ended long ago, or first where room was wanted, are gone, with their logs."
    ),
    "run_folders_full": LogEvent(
        "The folders of runs take more room than `launcher.keep_runs_bytes`, and none of them can go: their runs go on, or their "
        "owners may not have seen the end: the store has not answered for an hour behind it. Programs that write much keep it elsewhere; or give the disk, and the setting, more.",
        "warning",
    ),
    "programs_awaited": LogEvent(
        "The node has ended; programs of its host go on, and have `wait_s` for it: none where it ended by itself."
    ),
    "programs_told_to_end": LogEvent(
        "Programs went on for longer than the ending node waits for them. They are asked to end (SIGTERM), and report it; runs that have passed "
        "the gate fail with `terminated`, and `retry` says whether they are made again.",
        "warning",
    ),
    "programs_left": LogEvent(
        "The node ends while programs go on. Where they cannot outlive it, their runs will be `lost`.", "error"
    ),
    "node_takes_again": LogEvent("The order to hold nothing is gone; the node joins the group."),
    "node_silent": LogEvent(
        "Another node has said nothing for 25 s and did not end well: it fell, is frozen, or reaches the store no more. Told "
        "once by each node that sees it.",
        "error",
        "tidegate_nodes_silent_total",
    ),
    "promise_broken": LogEvent(
        "A shard of another node stands still: `promise` says in what, `since` when it was due (docs/operations.md). Told once.",
        "error",
        "tidegate_promises_broken_total",
        ("promise",),
    ),
    "promise_kept_again": LogEvent("A shard that stood still moves again.", "info"),
    "store_back": LogEvent("The store answers again; the node joins the group."),
    "health_listening": LogEvent("Where /livez, /readyz, /rolloutz and /metrics are."),
    "settings_refused": LogEvent("The settings do not fit; the message says which.", "error"),
    "client_said": LogEvent("A line of a library's own log.", "info"),
}
"""What the node itself logs."""

API_EVENTS: Final[dict[str, LogEvent]] = {
    "api_bug": LogEvent("An unforeseen error; the traceback follows. Report it.", "error"),
    "api_request": LogEvent("A request was answered; probes are left out."),
    "dead_letter_replayed": LogEvent(
        "Somebody had the record of a dead letter produced again, to the topic where it stood.",
        "info",
        "tidegate_dead_letters_replayed_total",
        ("topic",),
    ),
    "dead_letter_dropped": LogEvent("Somebody said of a dead letter that nothing is to be done about it.", "info"),
    "receipt_not_understood": LogEvent("A record among the receipts is none of ours, or a newer node's.", "warning"),
    "receipts_not_readable": LogEvent(
        "The broker does not say where the receipts end; it is asked again, and writes wait.", "warning"
    ),
    **TRANSACTION_EVENTS,
    "receipts_position_gone": LogEvent(
        "Receipts were removed before they were read; reading goes on at the end, and who waits looks into the store.",
        "warning",
    ),
    "stop_handed_over": LogEvent(
        "An open transaction keeps nodes from reading a stop, so this process has written it to its shard; the nodes' logs have `transaction_open`."
    ),
    "run_finished": LogEvent("A program reported its end."),
    "run_started": LogEvent("A program passed the start gate."),
}
"""What the API itself logs."""

LOG_EVENTS: Final[dict[str, LogEvent]] = {**CORE_NOTICES, **KAFKA_NOTICES, **NODE_EVENTS, **API_EVENTS}
