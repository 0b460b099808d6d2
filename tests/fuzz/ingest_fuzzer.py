"""Puts hostile records through the production actor, and judges what became of each: nothing escapes, nothing stands still,
and what was refused lies in the dead-letter topic, whole, under its offset.
"""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field

from tests.fuzz.hostile_records import Hostile, HostileRecords, Kind
from tests.fuzz.parser_verdict import refusal_of
from tests.support.builders import EVENTS, REQUESTS, SECOND, Doc, a_spec, an_apply, on_data
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Produce, Produced

BATCH = 50
"""Records that arrive together."""
SETTLING_MS = 20 * SECOND
"""After the last record: jobs are admitted, runs end, messages are due."""
TOPIC = "lake.commits"
TOPICS: dict[Kind, str] = {"requests": REQUESTS, "events": EVENTS, "sources": TOPIC}
SOURCE: Doc = {
    "kind": "source",
    "namespace": "flights",
    "name": "landed",
    "topic": TOPIC,
    "event": {
        "dataset": "raw",
        "partition": {"pointer": "/day"},
        "id": {"pointer": "/id"},
        "bytes": {"pointer": "/size"},
        "event_time": {"pointer": "/at"},
        "version": {"header": "ce_id"},
        "producer": {"pointer": "/spec/a/0"},
    },
}
SPEC = SourceSpec.model_validate(SOURCE)


@dataclass(slots=True)
class Fuzzed:
    """What became of some records.

    Attributes:
        made: How many were made in which way.
        refused: How many are dead letters.
        faults: What should not be: one text for each, with the seed that repeats it.
    """

    records: int = 0
    refused: int = 0
    made: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, other: Fuzzed) -> None:
        self.records += other.records
        self.refused += other.refused
        self.made += other.made
        self.faults += other.faults


class FuzzBench(ActorHarness):
    """Keeps what is produced as it is: hostile headers are no texts."""

    def __init__(self) -> None:
        self.produced: list[Produce] = []
        super().__init__()

    def _produced(self, produce: Produce) -> Produced:
        self.produced.append(produce)
        return Produced()


def fuzz(kind: Kind, seed: int, count: int) -> Fuzzed:
    """Puts `count` records of a seed through an actor that has schedules, a source, and nothing else to do."""
    said = Fuzzed(records=count)
    stream = HostileRecords(kind, seed)
    records = [stream.next() for _ in range(count)]
    said.made.update(each.made for each in records)
    bench = _bench()
    topic = TOPICS[kind]
    log = bench.log(topic, 0)
    begin = len(log)
    try:
        for first in range(0, count, BATCH):
            at = len(log)
            for each in records[first : first + BATCH]:
                log.append(LogRecord(len(log), bench.now, each.key, each.value, each.headers))
            bench.hand_over(topic, 0, at)
            bench.run(SECOND)
        bench.run(SETTLING_MS)
    except Exception:  # noqa: BLE001 - whatever leaves the actor is what is looked for
        said.faults.append(f"{kind} seed {seed}: left the actor: {traceback.format_exc(limit=-4)}")
        return said
    letters = _letters(bench, topic)
    said.refused = len(letters)
    for offset, each in enumerate(records, begin):
        said.faults += [
            f"{kind} seed {seed} offset {offset} ({each.made}): {wrong}"
            for wrong in _judge(kind, offset, each, letters)
        ]
    said.faults += [f"{kind} seed {seed}: {wrong}" for wrong in _of_the_whole(bench, topic)]
    return said


def _bench() -> FuzzBench:
    bench = FuzzBench()
    bench.create_topic(TOPIC)
    bench.run(SECOND)
    bench.request({"id": "s", "type": "source.apply", "namespace": "flights", "name": "landed", "spec": SOURCE})
    bench.request(an_apply(a_spec("often", trigger=on_data(count=2))))
    bench.request(
        an_apply(a_spec("heard", trigger={"type": "event", "event": "custom.truck-arrived"}) | {"namespace": "orders"})
    )
    bench.run(10 * SECOND)
    return bench


def _letters(bench: FuzzBench, topic: str) -> dict[int, Produce]:
    """Dead letters by the offset that they name; a letter may repeat, and then it is the same."""
    found = {}
    for each in bench.produced:
        headers = dict(each.headers)
        if headers.get("tidegate.error.topic") == topic.encode() and each.topic.endswith(".dlq"):
            found[int(headers["tidegate.error.offset"])] = each
    return found


def _judge(kind: Kind, offset: int, record: Hostile, letters: dict[int, Produce]) -> list[str]:
    letter = letters.get(offset)
    if letter is None:
        if record.is_no_record:
            return ["is no record of ours, and no dead letter"]
        refusal = refusal_of(kind, record, SPEC)
        return [f"is refused ({refusal}), and no dead letter"] if refusal is not None else []
    wrong = []
    if (letter.key, letter.value) != (record.key, record.value or b""):
        wrong.append("its dead letter has another key or value")
    if letter.headers[: len(record.headers)] != record.headers:
        wrong.append("its dead letter has other headers")
    message = dict(letter.headers)["tidegate.error.message"].decode()
    if "internal error" in message or not message:
        wrong.append(f"the refusal is about us: {message}")
    if record.made == "untouched":
        wrong.append(f"is right, and refused: {message}")
    return wrong


def _of_the_whole(bench: FuzzBench, topic: str) -> list[str]:
    facts = bench._facts_of(topic)
    assert facts is not None
    key = keys.topic_position(bench.holding.cluster_id, facts.id, 0)
    stored = bench.store.get([key]).get(key)
    position, end = (-1 if stored is None else stored["next"]), len(bench.log(topic, 0))
    wrong = [] if position == end else [f"the position stands at {position!r}, the log ends at {end}"]
    wrong += [f"a decision failed: {dict(each.fields)}" for each in bench.notices("decision_failed")]
    wrong += [f"the actor says {name}" for name in ("fenced", "dead_letter_refused") if bench.notices(name)]
    return wrong
