"""A tenure's produces: the guard is asked right before each that is guarded, and what it knew goes with the record."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.world.broker import Outgoing
from tests.simulation.world.observations import Sent, Try
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.effects import ManyProduced, NotProduced, Outcome, Produce

if TYPE_CHECKING:
    from tests.simulation.world.assignment import Tenure

PRODUCE_PATIENCE_MS = 2_500
"""`message.timeout.ms`: below half a session."""
SENT_HEADER = "simulation-sent"


def acts(tenure: Tenure, what: str) -> None:
    """Something irreversible: by then nobody else may have been given the topic partition (the guard's whole point)."""
    cluster = tenure.node.cluster
    holder = cluster.coordinator.holders.get(tenure.topic_partition, "")
    if not tenure.node.member.is_known_as(holder):
        cluster.record.failures.append(f"I5: {tenure.name} did {what} while {holder} held its topic partition")


def produce(tenure: Tenure, wanted: Produce, answer: Callable[[Outcome], None]) -> None:
    """Hands a record to the broker's client, if the guard allows, and answers once."""
    cluster, node = tenure.node.cluster, tenure.node
    headers, patience = wanted.headers, float(PRODUCE_PATIENCE_MS)
    message = wanted.value.decode(errors="replace")
    said = {name: value.decode() for name, value in wanted.headers if name in {"tidegate-id", "tidegate-nominal"}}
    stint = tenure.stint.name
    made: Try | None = None
    if wanted.guarded:
        made = Try(cluster.timeline.now, said["tidegate-id"], parse_instant(said["tidegate-nominal"]))
        cluster.record.tries[stint].append(made)

    def done(result: Outcome) -> None:
        if isinstance(result, NotProduced) and made is not None:
            cluster.record.not_sent.add(message)
            occurrence = f"{message.split('/')[0]}@{made.nominal}"
            cluster.record.not_sent.add(occurrence)
            if result.kind == "refused":
                cluster.record.refused[occurrence].append(cluster.timeline.now)
                made.refused = cluster.timeline.now
            if result.kind == "unavailable":
                cluster.record.unsure.add((stint, made.id))
                cluster.record.tried[made.id].append(cluster.timeline.now)
        node.process.post(lambda: answer(result))

    if wanted.guarded:
        left = node.guard.remaining_ms(cluster.timeline.now)
        if not tenure.may_act():
            cluster.trace.counted("guard_lapsed", "produce")
            node.process.after(1, lambda: done(NotProduced("guard", "the guard has lapsed")))
            return
        acts(tenure, f"produce {message}")
        patience = min(patience, left)
        sent = [cluster.timeline.now, node.clock(), node.owner, stint]
        headers = (*headers, (SENT_HEADER, json.dumps(sent).encode()))

    def fits() -> bool:
        # The client's queue is the process's: it outlives the topic partition, and ends with the guard.
        leaves = node.process.alive and not node.process.paused and (not wanted.guarded or node.guard_holds())
        if leaves and not tenure.alive:
            cluster.trace.counted("queue_outlived", wanted.topic)
        return leaves

    cluster.broker.produce(
        Outgoing(wanted.topic, wanted.key, wanted.value, headers, wanted.topic_partition, patience, fits), done
    )


def produce_many(tenure: Tenure, wanted: Sequence[Produce], answer: Callable[[ManyProduced], None]) -> None:
    """Hands records over, each with a fate of its own, and answers once that is known of all."""
    outcomes: dict[int, Outcome] = {}

    def done(index: int, outcome: Outcome) -> None:
        outcomes[index] = outcome
        if len(outcomes) == len(wanted):
            answer(ManyProduced([outcomes[each] for each in range(len(wanted))]))

    for index, record in enumerate(wanted):
        produce(tenure, record, partial(done, index))


def sent_of(record: LogRecord) -> Sent:
    """Returns what the simulated driver noted when it checked the guard for this record."""
    at, clock, owner, stint = json.loads(dict(record.headers)[SENT_HEADER])
    return Sent(at, clock, owner, stint)
