"""Senders of one-shot messages: with and without key, with and without request id, replaced, cancelled, repeated."""

from __future__ import annotations

import itertools
import json
from functools import partial
from typing import Any

from tests.simulation.runner.swarm import Burst, Swarm
from tests.simulation.users.requests import Asked, Requests
from tests.simulation.users.sent_message import Letter
from tests.simulation.world import cluster as world
from tests.simulation.world.broker import Outgoing
from tests.simulation.world.cluster import Cluster
from tests.simulation.world.guarded_produce import sent_of
from tests.simulation.world.observations import Delivery
from tests.simulation.world.timeline import START
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.language.values.derived_ids import message_shard, unnamed_message_shard
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.effects import NotProduced

SINKS = ("sink-a", "sink-b")
NAMESPACE = "post"
PATIENCE_MS = 1_500


def broken_request(number: int) -> bytes:
    """Returns what is no request, each time another one."""
    return json.dumps({"type": "message.send", "wrong": number}).encode()


class Senders:
    """All senders of messages.

    Attributes:
        letters: By name.
        broken: Records sent that are no requests.
        broken_at: Where each of them lies, by its number.
        last_due: Time of the last of them.
    """

    def __init__(self, cluster: Cluster, requests: Requests) -> None:
        self.letters: dict[str, Letter] = {}
        self.broken = 0
        self.broken_at: dict[int, list[Position]] = {}
        self.last_due = 0
        self._cluster = cluster
        self._requests = requests

    def plan(self, swarm: Swarm) -> None:
        timeline, busy_ms = self._cluster.timeline, swarm.busy_ms
        plans = ((self._send_bare, 14), (self._send_with_id, 12), (self._send_keyed, 8), (self._send_broken, 6))
        for plan, most in plans:
            for _ in range(timeline.chance.randint(most // 2, most)):
                timeline.after(timeline.between(500, busy_ms), plan)
        for burst in swarm.bursts:
            for _ in range(burst.count):
                timeline.after(timeline.between(*burst.sent), partial(self._send_of, burst))

    # -- kinds of senders ---------------------------------------------------------------------------------------------

    def _send_bare(self) -> None:
        """No key, no id: whoever does not hear of it cannot repeat it."""
        _letter, document = self._write()
        self._produce(document)

    def _send_with_id(self) -> None:
        letter, document = self._write()
        letter.has_id = True
        chance = self._cluster.timeline.chance
        if chance.random() < 0.5:
            letter.asked = self._requests.ask({**document, "receipt": True}, lambda asked: self._consider(letter))
        else:
            self._produce({"id": f"id-{letter.name}", **document}, again=True)

    def _consider(self, letter: Letter) -> None:
        """Some senders change their mind some time after they know that it was accepted."""
        timeline = self._cluster.timeline
        if timeline.happens(0.5):
            timeline.after(self._pause_before(letter), lambda: self._cancel(letter))

    def _cancel(self, letter: Letter) -> None:
        assert letter.asked is not None
        request = {"type": "message.cancel", "namespace": NAMESPACE, "message_id": letter.asked.id}
        letter.ended = self._requests.ask(request, lambda asked: None)

    def _send_keyed(self) -> None:
        self._put(f"key{len(self.letters)}", None, self._cluster.timeline.chance.randint(0, 4))

    def _put(self, key: str, before: Letter | None, changes: int) -> Asked:
        """Sends under a key; the next change follows the answer."""
        letter, document = self._write()
        letter.has_id = True
        body = {**document, "key": key, "receipt": True}
        letter.asked = self._requests.ask(body, lambda asked: self._change(key, letter, changes))
        if before is not None:
            before.ended = letter.asked
        return letter.asked

    def _change(self, key: str, letter: Letter, changes: int) -> None:
        if changes == 0:
            return
        timeline = self._cluster.timeline
        if timeline.happens(0.7):
            timeline.after(self._pause_before(letter), lambda: self._replace(key, letter, changes - 1))
        else:
            timeline.after(self._pause_before(letter), lambda: self._cancel_key(key, letter, changes))

    def _replace(self, key: str, letter: Letter, changes: int) -> None:
        self._put(key, letter, changes)

    def _cancel_key(self, key: str, letter: Letter, changes: int) -> None:
        request = {"type": "message.cancel", "namespace": NAMESPACE, "key": key}
        timeline = self._cluster.timeline

        def cancelled(asked: Asked) -> None:
            if changes > 1:
                timeline.after(timeline.between(0, 5_000), follow)

        def follow() -> None:
            letter.followed = self._put(key, None, changes - 2)

        letter.ended = self._requests.ask(request, cancelled)

    def _send_of(self, burst: Burst) -> None:
        """One of many: without id, or under one that puts it into the wanted shard."""
        name = f"m{len(self.letters)}"
        letter = self._keep(Letter(name, START + int(self._cluster.timeline.between(*burst.due))))
        if burst.in_shard is None:
            self._produce(self._document(letter))
            return
        letter.has_id = True
        ids = (f"{name}-{number}" for number in itertools.count())
        request_id = next(each for each in ids if self._shard_of(None, each) == burst.in_shard)
        self._produce({"id": request_id, **self._document(letter)}, again=True)

    def _shard_of(self, key: str | None, text: str) -> int:
        return message_shard(NAMESPACE, key, text, self._cluster.swarm.shards)

    def _send_broken(self) -> None:
        self.broken += 1
        self._produce_value(broken_request(self.broken), again=True)

    # -- writing ------------------------------------------------------------------------------------------------------

    def _write(self) -> tuple[Letter, dict[str, Any]]:
        timeline = self._cluster.timeline
        ahead = int(timeline.chance.choice((-1_000, 300, 2_000, 8_000, 20_000, 75_000)) * timeline.between(0.2, 1))
        letter = self._keep(Letter(f"m{len(self.letters)}", timeline.now + ahead))
        document = self._document(letter)
        if ahead > 0 and timeline.happens(0.4):
            letter.after_ms = ahead
            del document["deliver_at"]
            document["after"] = f"{ahead}ms"
        if timeline.happens(0.1):
            letter.expire_ms = 4_000
            document["expire_after"] = "4s"
        return letter, document

    def _keep(self, letter: Letter) -> Letter:
        self.letters[letter.name] = letter
        self.last_due = max(self.last_due, letter.due)
        return letter

    def _document(self, letter: Letter) -> dict[str, Any]:
        return {
            "type": "message.send",
            "namespace": NAMESPACE,
            "topic": self._cluster.timeline.chance.choice(SINKS),
            "payload_text": letter.name,
            "deliver_at": format_instant(letter.due),
        }

    def _pause_before(self, letter: Letter) -> float:
        """Some time before the letter's time, or right at it."""
        timeline = self._cluster.timeline
        left = max(1, letter.due - timeline.now)
        return timeline.between(0, left) if timeline.happens(0.6) else max(1, left + timeline.between(-300, 300))

    def _produce(self, document: dict[str, Any], *, again: bool = False) -> None:
        self._produce_value(json.dumps(document).encode(), again=again)

    def _produce_value(self, value: bytes, *, again: bool) -> None:
        def done(result: object) -> None:
            if again and isinstance(result, NotProduced):
                self._cluster.timeline.after(300, lambda: self._produce_value(value, again=True))

        outgoing = Outgoing(world.REQUESTS, None, value, (), None, PATIENCE_MS, lambda: True)
        self._cluster.broker.produce(outgoing, done)

    # -- what the topics say ------------------------------------------------------------------------------------------

    def request_appended(self, topic_partition: int, record: LogRecord) -> None:
        document = json.loads(record.value or b"{}")
        topic_id = self._cluster.broker.topics[world.REQUESTS].id
        position = record.position(topic_id, topic_partition, record.append_time)
        if "wrong" in document:
            self.broken_at.setdefault(document["wrong"], []).append(position)
        letter = self.letters.get(document.get("payload_text", ""))
        if letter is None:
            return
        letter.records.append(record.append_time)
        letter.positions.append(position)
        if letter.after_ms is not None:
            letter.due = letter.records[0] + letter.after_ms
            # Of a request that was written twice either record may be the one that is taken.
            self.last_due = max(self.last_due, record.append_time + letter.after_ms)
        key, name = document.get("key"), document.get("id")
        shards = self._cluster.swarm.shards
        letter.shards.append(
            unnamed_message_shard(topic_partition, shards)
            if key is None and name is None
            else self._shard_of(key, name or "")
        )

    def delivered(self, topic_partition: int, record: LogRecord) -> None:
        headers = {name: value.decode() for name, value in record.headers}
        name = (record.value or b"").decode()
        nominal = parse_instant(headers["tidegate-nominal"])
        ends = [headers[each] for each in ("tidegate-covered-from", "tidegate-covered-to") if each in headers]
        covered = (parse_instant(ends[0]), parse_instant(ends[1])) if ends else None
        delivery = Delivery(record.append_time, headers["tidegate-id"], name, sent_of(record), nominal, covered)
        self._cluster.record.deliveries.append(delivery)
