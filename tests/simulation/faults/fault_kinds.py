"""The kinds of fault that are injected, each with what it means. `Trace.bit` takes no other.

What users do on their own (repeats) and what follows from a fault (a lapsed guard, a lost membership) is no fault and is
counted elsewhere: a world without faults has none of these.
"""

from __future__ import annotations

from collections.abc import Mapping

_STORE: Mapping[str, str] = {
    "brown_out": "the store answers nobody for a while",
    "brown_out_late_applied": "a write of a brown-out takes effect after it",
    "brown_out_late_refused": "a write of a brown-out arrives after it and is refused",
    "lost_request": "a transaction never arrives",
    "lost_answer_applied": "a write takes effect and nobody is told",
    "lost_answer_refused": "a transaction is refused and nobody is told",
    "late_applied": "a write takes effect seconds after its sender gave it up",
    "late_refused": "a transaction arrives seconds after its sender gave it up, and is refused",
    "duplicate_applied": "a write arrives a second time and takes effect again",
    "duplicate_refused": "a transaction arrives a second time and is refused",
    "throttled": "a transaction is turned away",
    "conflict": "two transactions touch the same item within moments",
    "unprocessed": "a part of a batch is not written",
    "unreadable": "a read gets no answer",
    "torn": "the items of one read were written to while it read them: some are older than others",
    "stalled_load": "reads of one range get no answer, or a very late one, while all else goes on",
    "stalled_batch": "batches with timer rows of messages are not written, while all else goes on",
    "stalled_checkpoint": "checkpoints get no answer, while all else goes on",
}
_BROKER: Mapping[str, str] = {
    "broker_down": "no record is taken",
    "refused": "a topic does not take the record",
    "not_appended": "a record is not there and its producer hears nothing",
    "lost_ack": "a record is there and its producer hears nothing",
    "lost_poke": "a poke reaches nobody",
    "behind_end": "records that were read wait in a busy node's queue, and come behind the end of their reading",
    "open_transaction": "a transaction of a user stays open, and readers get no record behind its first one",
    "marked": "a transaction of a user ends behind its records with a mark that has an offset and is no record",
}
_NODE: Mapping[str, str] = {
    "crash": "a node dies; `on <transaction>` at the moment at which that took effect and before it knows",
    "pause": "a node is frozen and goes on; `on <transaction>` likewise",
    "drain": "a node is told to end",
    "black_out": "all nodes are gone for hours",
    "clock_step": "a node's clock jumps",
    "grown": "a topic gets further topic partitions",
    "recreated": "a topic is deleted and made again, empty and under another id",
}
_LAUNCHER: Mapping[str, str] = {
    "launcher_refused": "the platform cannot be reached",
    "launch_answer_lost": "the platform takes a program and does not say so",
    "early_death": "a program dies before its body",
    "silent_death": "a program dies in its body without a report",
    "api_call_lost": "a program's call gets no answer",
    "lookup_unknown": "the platform cannot say whether it knows a name",
    "gate_unreachable": "a program finds no API process",
    "platform_restart": "the platform starts an artefact again that had died",
    "name_expired": "the platform has forgotten the name of what has gone",
    "rejected": "the platform will never take an attempt",
    "kept_in_line": "a node does not hand an attempt to the platform yet",
    "hung": "a program does not come to the gate",
    "given_up": "a program ends before the gate, and the platform says what was wrong",
    "endless": "a program does not end by itself",
    "deaf": "a program that is asked to end goes on",
    "classed": "a program fails and says of what class that is",
}

INJECTED: Mapping[str, str] = {**_STORE, **_BROKER, **_NODE, **_LAUNCHER}
