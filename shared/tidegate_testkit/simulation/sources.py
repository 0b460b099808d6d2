"""A topic of the users' own: its producers, and the user of the source that maps it, who troubles it now and then.

Its events are of dataset `a` beside those of the events topic, so that every schedule that waits for `a` hears both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

from tidegate_core.decisions.inputs import LogRecord
from tidegate_core.effects import NotProduced
from tidegate_testkit.simulation.broker import Outgoing
from tidegate_testkit.simulation.cluster import SOURCE_TOPIC, Cluster
from tidegate_testkit.simulation.definitions import NAMESPACE
from tidegate_testkit.simulation.drawing import source
from tidegate_testkit.simulation.events import Announced, Producers
from tidegate_testkit.simulation.requests import Asked, Requests

TRAP: Final = "sources"
SHARE: Final = 0.25
"""Of the worlds without the trap."""
NAME: Final = "landed"
DATASET: Final = "a"
RECORDS: Final = (14, 30)
BROKEN: Final = 0.1
TWICE: Final = 0.2
TWICE_WITHIN_MS: Final = 8_000
PATIENCE_MS: Final = 1_500
ROUNDS_MAX: Final = 5
AGAIN_MS: Final = 1_000
KINDS: Final = ("update", "update", "same", "delete", "delete")


@dataclass(slots=True)
class SourceSpan:
    """From an apply that made the source to the delete that ended it; `end` None: it is there still."""

    begin: Asked
    end: Asked | None = None

    def surely(self, instant: int) -> bool:
        """Whether a record of then was mapped: it was there already, and was never taken away before it was read."""
        return self.end is None and self.begin.receipt is not None and self.begin.acked_at < instant

    def maybe(self, instant: int) -> bool:
        end = self.end
        over = end is not None and end.receipt is not None and end.acked_at < instant
        return bool(self.begin.appended) and self.begin.appended[0] <= instant and not over


def was_silent(asked: Asked) -> bool:
    """Whether it was refused because its topic did not answer."""
    errors = [] if asked.receipt is None else asked.receipt.body.get("errors") or []
    return any("does not answer now" in error["problem"] for error in errors)


class SourceUser:
    """Drives one source: each request is sent after the answer to the one before.

    Attributes:
        steps: Its requests, each with the answer that it must have.
        spans: When the source was there.
    """

    def __init__(self, cluster: Cluster, requests: Requests, producers: Producers, chance: Random) -> None:
        self.steps: list[tuple[Asked, str]] = []
        self.spans: list[SourceSpan] = []
        self.is_done = True
        self._cluster = cluster
        self._requests = requests
        self._producers = producers
        self._chance = chance
        self._rounds = chance.choice((0, 0, *range(ROUNDS_MAX)))
        self._variant = 0
        self._closing = False
        cluster.timeline.after(chance.randint(200, 9_000), self._apply)
        for number in range(chance.randint(*RECORDS)):
            cluster.timeline.after(chance.randint(200, cluster.swarm.busy_ms), partial(self._produce, number))

    @property
    def is_there(self) -> bool:
        return bool(self.spans) and self.spans[-1].end is None

    def close(self) -> None:
        """The world comes to rest: the source stays as it is."""
        self._closing = True

    # -- requests -------------------------------------------------------------------------------------------------------

    def _ask(self, kind: str, status: str, **more: Any) -> Asked:
        self.is_done = False
        document = {"type": f"source.{kind}", "namespace": NAMESPACE, "name": NAME, **more}
        asked = self._requests.ask(document, self._answered)
        self.steps.append((asked, status))
        return asked

    def _apply(self) -> None:
        """Another variant is another definition of the same events."""
        event = {
            "dataset": DATASET,
            "partition": {"pointer": "/file/day"},
            "id": {"header": "id"},
            "producer": f"variant {self._variant}",
        }
        spec = {"kind": "source", "namespace": NAMESPACE, "name": NAME, "topic": SOURCE_TOPIC, "event": event}
        was_there = self.is_there
        asked = self._ask("apply", "accepted", spec=spec)
        if not was_there:
            self.spans.append(SourceSpan(asked))

    def _answered(self, asked: Asked) -> None:
        if was_silent(asked):
            # As the answer's hint says: again, once its topic answers.
            self.spans = [span for span in self.spans if span.begin is not asked]
            self._cluster.timeline.after(AGAIN_MS, self._apply)
            return
        self.is_done = True
        if not self._closing and self._rounds:
            self._rounds -= 1
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
            spec = next(each.document["spec"] for each, _ in reversed(self.steps) if "spec" in each.document)
            self._ask("apply", "unchanged", spec=spec)
        else:
            self._variant += 1
            self._apply()

    # -- records --------------------------------------------------------------------------------------------------------

    def _produce(self, number: int) -> None:
        if self._chance.random() < BROKEN:
            self._producers.broken += 1
            self._send(b"no event", f"broken{number}")
            return
        value = json.dumps({"file": {"day": f"s{number}"}}).encode()
        self._send(value, f"s{number}")
        if self._chance.random() < TWICE:
            later = self._chance.randint(0, TWICE_WITHIN_MS)
            self._cluster.timeline.after(later, lambda: self._send(value, f"s{number}"))

    def _send(self, value: bytes, record_id: str) -> None:
        def done(result: object) -> None:
            if isinstance(result, NotProduced):
                self._cluster.timeline.after(300, lambda: self._send(value, record_id))

        headers = (("id", record_id.encode()),)
        self._cluster.broker.produce(
            Outgoing(SOURCE_TOPIC, None, value, headers, None, PATIENCE_MS, lambda: True), done
        )

    def appended(self, topic_partition: int, record: LogRecord) -> None:
        """What the source makes of a record is an announcement like any other, as long as the source is there."""
        record_id = dict(record.headers)["id"].decode()
        if record_id.startswith("broken"):
            return
        event_id = f"{NAME}/{record_id}"
        known = self._producers.announced.setdefault(event_id, Announced(event_id, DATASET, record_id, by_source=True))
        known.appended.append(record.append_time)

    def is_mapped(self, instant: int) -> bool:
        """Whether a record that was appended then surely became an event."""
        return any(span.surely(instant) for span in self.spans)

    def may_be_mapped(self, instant: int) -> bool:
        return any(span.maybe(instant) for span in self.spans)


def source_users(cluster: Cluster, requests: Requests, producers: Producers, seed: int) -> list[SourceUser]:
    """Returns the user of the world's source, with all that is going to happen planned; none in most worlds."""
    chance = source(seed, "sources")
    if chance.random() >= SHARE and TRAP not in cluster.swarm.traps:
        return []
    user = SourceUser(cluster, requests, producers, chance)
    cluster.broker.create(SOURCE_TOPIC, chance.randint(1, 9), user.appended)
    return [user]
