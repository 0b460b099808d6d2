"""A topic of the users' own: its producers, and the user of the source that maps it, who troubles it now and then.

Its events are of dataset `a` beside those of the events topic, so that every schedule that waits for `a` hears both. In some worlds each
record has a list of them, with elements among them that are not meant, and some records are tombstones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

from tests.simulation.runner.world_drawing import source
from tests.simulation.users.event_producers import Announced, Producers
from tests.simulation.users.requests import Asked, Requests
from tests.simulation.users.schedule_definitions import NAMESPACE
from tests.simulation.world.broker import Outgoing
from tests.simulation.world.cluster import SOURCE_TOPIC, Cluster
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.rows.effects import NotProduced

TRAP: Final = "sources"
RAREST: Final = "rarest"
SHARE: Final = 0.25
"""Of the worlds without the trap."""
NAME: Final = "landed"
DATASET: Final = "a"
RECORDS: Final = (14, 30)
MANY_RECORDS: Final = (80, 160)
"""In worlds of the trap `rarest`: some of them wait in their reader's queue when it hands over."""
BROKEN: Final = 0.1
TWICE: Final = 0.2
TWICE_WITHIN_MS: Final = 8_000
PATIENCE_MS: Final = 1_500
ROUNDS_MAX: Final = 5
LISTS: Final = 0.5
"""Of the sources: each record has a list, whose elements are the events."""
ELEMENTS_MAX: Final = 4
KINDS: Final = ("update", "update", "same", "delete", "delete")


@dataclass(slots=True)
class SourceSpan:
    """From an apply that made the source to the delete that ended it; `end` None: it is there still."""

    begin: Asked
    end: Asked | None = None

    def surely(self, instant: int) -> bool:
        """Whether a record of then was mapped: it was there already, and was never taken away before it was read."""
        return self.end is None and self.begin.receipt is not None and self.begin.acked_at < instant

    def maybe(self, instant: int, until: int | None = None) -> bool:
        """Whether it may have been there then, or at some time from then until the other instant."""
        end = self.end
        over = end is not None and end.receipt is not None and end.acked_at < instant
        last = instant if until is None else until
        return bool(self.begin.appended) and self.begin.appended[0] <= last and not over


@dataclass(frozen=True, slots=True)
class SourceStep:
    """A request on the source.

    Attributes:
        status: The answer that it must have.
        opens: The source was not there: it may be refused while its topic does not answer.
    """

    asked: Asked
    status: str
    opens: bool = False


class SourceUser:
    """Drives one source: each request is sent after the answer to the one before.

    Attributes:
        steps: Its requests.
        spans: When the source was there.
    """

    def __init__(
        self, cluster: Cluster, requests: Requests, producers: Producers, chance: Random, *, has_lists: bool
    ) -> None:
        self.steps: list[SourceStep] = []
        self.spans: list[SourceSpan] = []
        self.is_done = True
        self._cluster = cluster
        self._requests = requests
        self._producers = producers
        self._chance = chance
        self._rounds = chance.choice((0, 0, *range(ROUNDS_MAX)))
        self._variant = 0
        self._closing = False
        self._sent = 0
        self._has_lists = has_lists
        self._by_place = cluster.swarm.topics.source_recreated is not None
        cluster.timeline.after(chance.randint(200, 9_000), self._apply)
        for number in range(chance.randint(*(MANY_RECORDS if RAREST in cluster.swarm.traps else RECORDS))):
            cluster.timeline.after(chance.randint(200, cluster.swarm.busy_ms), partial(self._produce, number))

    @property
    def is_there(self) -> bool:
        return bool(self.spans) and self.spans[-1].end is None

    def close(self) -> None:
        """The world comes to rest: the source stays as it is."""
        self._closing = True

    # -- requests -------------------------------------------------------------------------------------------------------

    def _ask(self, kind: str, status: str, *, opens: bool = False, **more: Any) -> Asked:
        self.is_done = False
        document = {"type": f"source.{kind}", "namespace": NAMESPACE, "name": NAME, **more}
        asked = self._requests.ask(document, self._answered)
        self.steps.append(SourceStep(asked, status, opens))
        return asked

    def _apply(self) -> None:
        """Another variant is another definition of the same events."""
        event: dict[str, Any] = {"dataset": DATASET, "producer": f"variant {self._variant}"}
        event["partition"] = {"pointer": "/day" if self._has_lists else "/file/day"}
        if not self._by_place:
            event["id"] = {"header": "id"}
        spec = {"kind": "source", "namespace": NAMESPACE, "name": NAME, "topic": SOURCE_TOPIC, "event": event}
        if self._has_lists:
            where = {"not": {"pointer": "/kind", "equals": "test"}}
            spec |= {"each": "/files", "where": where, "ignore": "tombstones"}
        was_there = self.is_there
        asked = self._ask("apply", "accepted", opens=not was_there, spec=spec)
        if not was_there:
            self.spans.append(SourceSpan(asked))

    def _answered(self, asked: Asked) -> None:
        self.is_done = True
        refused = asked.status == "rejected" and self.steps[-1].opens
        if refused:
            self.spans.pop()  # Nothing is mapped before it is answered otherwise.
        if not self._closing and (self._rounds or refused):
            self._rounds -= 0 if refused else 1
            self._cluster.timeline.after(self._chance.randint(300, 9_000), self._trouble)

    def _trouble(self) -> None:
        if self._closing or not self.is_done:
            return
        kind = self._chance.choice(KINDS)
        if not self.is_there:
            self._apply()
        elif kind == "delete":
            self.spans[-1].end = self._ask("delete", "accepted")
        elif kind == "same":
            spec = next(each.asked.document["spec"] for each in reversed(self.steps) if "spec" in each.asked.document)
            self._ask("apply", "unchanged", spec=spec)
        else:
            self._variant += 1
            self._apply()

    # -- records --------------------------------------------------------------------------------------------------------

    def _produce(self, number: int) -> None:
        if self._chance.random() < BROKEN:
            self._producers.broken += 1
            self._send(f"broken{number}")
            return
        self._send(f"s{number}")
        if self._chance.random() < TWICE:
            later = self._chance.randint(0, TWICE_WITHIN_MS)
            self._cluster.timeline.after(later, lambda: self._send(f"s{number}"))

    def _send(self, record_id: str) -> None:
        """Sends it until it is acknowledged. Where its place is its id, each record is an event, of a data partition of its own."""

        def done(result: object) -> None:
            if isinstance(result, NotProduced):
                self._cluster.timeline.after(300, lambda: self._send(record_id))

        self._sent += 1
        day = f"{record_id}.{self._sent}" if self._by_place else record_id
        broken = record_id.startswith("broken")
        value = (b"" if self._has_lists and self._sent % 2 else b"no event") if broken else self._value(record_id, day)
        headers = (("id", record_id.encode()),)
        self._cluster.broker.produce(
            Outgoing(SOURCE_TOPIC, None, value, headers, None, PATIENCE_MS, lambda: True), done
        )

    def _value(self, record_id: str, day: str) -> bytes:
        """A repeat of a record under its id has the same elements."""
        if not self._has_lists:
            return json.dumps({"file": {"day": day}}).encode()
        number = int(record_id.removeprefix("s"))
        files = [{"day": f"{day}-{place}"} for place in range(1 + number % ELEMENTS_MAX)]
        return json.dumps({"files": [{"kind": "test"}, *files] if number % 3 == 0 else files}).encode()

    def appended(self, topic_partition: int, record: LogRecord) -> None:
        """What the source makes of a record are announcements like any other, as long as the source is there."""
        record_id = dict(record.headers)["id"].decode()
        if record_id.startswith("broken"):
            return
        topic_id = self._cluster.broker.topics[SOURCE_TOPIC].id
        place = f"{topic_id}/{topic_partition}/{record.offset}"
        event_id = f"{NAME}/{place if self._by_place else record_id}"
        if not self._has_lists:
            self._announced(event_id, record_id, record, topic_partition)
            return
        for number, element in enumerate(json.loads(record.value or b"{}")["files"]):
            if "day" in element:
                self._announced(f"{event_id}/{number}", str(element["day"]), record, topic_partition)

    def _announced(self, event_id: str, day: str, record: LogRecord, topic_partition: int) -> None:
        topic_id = self._cluster.broker.topics[SOURCE_TOPIC].id
        known = self._producers.announced.setdefault(event_id, Announced(event_id, DATASET, day, by_source=True))
        known.appended.append(record.append_time)
        known.records.append(record.position(topic_id, topic_partition, record.append_time))
        known.lost = False

    def is_mapped(self, instant: int) -> bool:
        """Whether a record that was appended then surely became an event."""
        return any(span.surely(instant) for span in self.spans)

    def may_be_mapped(self, instant: int) -> bool:
        return any(span.maybe(instant) for span in self.spans)

    def may_be_there(self, begin: int, end: int) -> bool:
        """Whether time-outs may have waited for its topic at some time in between."""
        return any(span.maybe(begin, end) for span in self.spans)


def source_users(cluster: Cluster, requests: Requests, producers: Producers, seed: int) -> list[SourceUser]:
    """Returns the user of the world's source, with all that is going to happen planned; none in most worlds."""
    chance = source(seed, "sources")
    if chance.random() >= SHARE and TRAP not in cluster.swarm.traps:
        return []
    # Drawn apart, so that worlds without lists stay what they are.
    has_lists = source(seed, "source lists").random() < LISTS
    user = SourceUser(cluster, requests, producers, chance, has_lists=has_lists)
    cluster.broker.create(SOURCE_TOPIC, chance.randint(1, 9), user.appended, is_of_users=True)
    return [user]
