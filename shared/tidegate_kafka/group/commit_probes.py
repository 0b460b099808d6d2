"""Commit probes: offset commits that prove the group membership and carry position hints for lag tools.

The group coordinator answers an asynchronous commit through poll; a synchronous commit would block for a whole
rebalance. Each probe carries its number in the commit's metadata, which returns with the answer. So an answer is never
credited to a later probe. All methods but `ask` and `hint` belong to the consumer's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tidegate_core.engine.membership_lease import PROBES_OPEN_MAX, MembershipLease, ProbeVerdict
from tidegate_kafka.clients.error_codes import probe_verdict
from tidegate_kafka.clients.loop_bridge import Post
from tidegate_kafka.consumer.partition_flows import Client
from tidegate_ports.bus import Notices

PREFIX = "tidegate probe "
PROOFS_OPEN_MAX = 1_000
"""Most questions that wait for a probe; each shard's actor asks one at a time, and there are 256 shards by default."""
COMMITTED_PATIENCE_S = 0.5
"""Time-out for reading what an earlier member committed; far below half a session."""

Asked = tuple[int, "asyncio.Future[bool | None]"]


class Probes:
    """Sends probes for one topic, passes their answers to the membership lease, and answers requests for proof."""

    def __init__(self, topic: str, guard: MembershipLease, every_ms: int, post: Post, notices: Notices) -> None:
        self._topic = topic
        self._guard = guard
        self._every_ms = every_ms
        self._post = post
        self._notices = notices
        self._asked: deque[Asked] = deque()
        self._waiting: dict[int, list[Asked]] = {}
        self._hints: dict[int, int] = {}
        self._fresh: set[int] = set()
        self._next_at = 0
        self._noticed: int | None = None
        self._outstanding: set[int] = set()
        self.owned: frozenset[int] = frozenset()

    @property
    def outstanding(self) -> bool:
        """Whether the client has commits of ours without an answer."""
        return bool(self._outstanding)

    def ask(self, topic_partition: int, answer: asyncio.Future[bool | None]) -> bool:
        """Queues a request for the next probe; returns False when too many wait. Called on the loop."""
        if len(self._asked) >= PROOFS_OPEN_MAX:
            return False
        self._asked.append((topic_partition, answer))
        return True

    def hint(self, topic_partition: int, offset: int) -> None:
        self._hints[topic_partition] = offset
        self._fresh.add(topic_partition)

    def forget(self, topic_partitions: Iterable[int]) -> None:
        for number in topic_partitions:
            self._hints.pop(number, None)
            self._fresh.discard(number)

    def send_if_due(self, client: Client, now: int) -> None:
        if not self.owned:
            self._answer(self._take_asked(), held=False)
        elif self._asked or now >= self._next_at:
            self.send(client, now)

    def send(self, client: Client, now: int) -> None:
        """Commits the hints that changed, or repeats one of them: an answer to either proves the membership."""
        self._next_at = now + self._every_ms
        if not self.owned:
            return
        probe = self._guard.probe_sent(now)
        self._remember(probe, self._take_asked())
        try:
            client.commit(offsets=self._what_to_commit(client, f"{PREFIX}{probe}"), asynchronous=True)
        except KafkaException as failure:
            self._settle(probe, probe_verdict(failure.args[0]))
        else:
            self._outstanding.add(probe)
            self._fresh.clear()

    def on_commit(self, error: KafkaError | None, committed: Sequence[TopicPartition]) -> ProbeVerdict:
        """Takes an answer and returns what it says about the present membership."""
        probe = next((number for part in committed if (number := _number(part.metadata)) is not None), None)
        errors = [error, *(part.error for part in committed)]
        verdicts = {probe_verdict(each) for each in errors if each is not None}
        verdict = ProbeVerdict.MEMBER
        if not verdicts:
            self._noticed = None
        else:
            verdict = ProbeVerdict.EXPELLED if ProbeVerdict.EXPELLED in verdicts else ProbeVerdict.UNSETTLED
            self._notice(verdict, next(each for each in errors if each is not None))
        if probe is not None:
            self._outstanding.discard(probe)
        if probe is None or not self._settle(probe, verdict):
            return ProbeVerdict.UNSETTLED
        return verdict

    def close(self) -> None:
        """Ends the membership: pending requests for proof are answered with None, unknown."""
        self._outstanding.clear()
        for probe in list(self._waiting):
            self._answer(self._waiting.pop(probe), held=None)
        self._answer(self._take_asked(), held=None)

    def _notice(self, verdict: ProbeVerdict, error: KafkaError) -> None:
        """Logs each kind of refusal once: during an outage every probe is refused alike."""
        if error.code() != self._noticed:
            self._noticed = error.code()
            self._notices("kafka_probe_refused", verdict=verdict.value, reason=f"{error.name()}: {error.str()}")

    def _settle(self, probe: int, verdict: ProbeVerdict) -> bool:
        believed = self._guard.probe_answered(probe, verdict)
        if verdict is not ProbeVerdict.MEMBER:
            # The hints of this probe were not stored. The next one carries them again, unchanged ones included.
            self._fresh |= self._hints.keys()
        held = {ProbeVerdict.MEMBER: True, ProbeVerdict.EXPELLED: False, ProbeVerdict.UNSETTLED: None}[verdict]
        self._answer(self._waiting.pop(probe, []), held=held if believed else None)
        return believed

    def _answer(self, asked: Sequence[Asked], *, held: bool | None) -> None:
        for number, future in asked:
            # The coordinator confirms the member; the client's own assignment confirms the topic partition.
            self._post(_resolve, future, held and number in self.owned)

    def _take_asked(self) -> list[Asked]:
        taken = []
        while self._asked:
            taken.append(self._asked.popleft())
        return taken

    def _remember(self, probe: int, asked: list[Asked]) -> None:
        if asked:
            self._waiting[probe] = asked
        while len(self._waiting) > PROBES_OPEN_MAX:
            self._answer(self._waiting.pop(min(self._waiting)), held=None)

    def _what_to_commit(self, client: Client, metadata: str) -> list[TopicPartition]:
        """Returns at least one offset, never lower than a known one."""
        if known := sorted(self._hints.keys() & self.owned):
            moved = [number for number in known if number in self._fresh] or known[:1]
            return [TopicPartition(self._topic, number, self._hints[number], metadata=metadata) for number in moved]
        # No position is known yet. Commit the committed offset again, or 0 for a topic partition without one.
        number = min(self.owned)
        found = client.committed([TopicPartition(self._topic, number)], COMMITTED_PATIENCE_S)[0].offset
        return [TopicPartition(self._topic, number, max(0, found), metadata=metadata)]


def _number(metadata: str | None) -> int | None:
    text = (metadata or "").removeprefix(PREFIX)
    return int(text) if text != metadata and text.isdigit() else None


def _resolve(future: asyncio.Future[bool | None], held: bool | None) -> None:
    if not future.done():
        future.set_result(held)
