"""One consumer as a member of the group: reads, probes, executes commands, reports assignments and revocations.

All of it runs on the consumer's thread; the group's callbacks come from inside `poll` and `close`. Callbacks can be
late, can name foreign topic partitions, or may not come at all. So they are only reported, and no safety depends on
them. An exception inside a callback would end the poll loop, so it is kept and raised by the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from confluent_kafka import KafkaError, TopicPartition

from tidegate_core.engine.membership_lease import MembershipLease, ProbeVerdict
from tidegate_kafka.clients.connectivity import CutOff, OthersFind, others_find
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.batch_poll import read_batch
from tidegate_kafka.consumer.consumer_commands import ConsumerCommands
from tidegate_kafka.consumer.partition_flows import Client, ClientEnded, PartitionFlows, PositionGone, Read, is_fatal
from tidegate_kafka.group.commit_probes import Probes
from tidegate_kafka.group.pending_drain import PendingDrain, drain_ms
from tidegate_kafka.group.stuck_join import Joining
from tidegate_ports.bus import Notices, Record, Topic
from tidegate_ports.clock import Clock


class Teller(Protocol):
    """Passes events of the member on to the loop."""

    def gives(self, topic_partitions: Sequence[int]) -> None: ...

    def assigned(self, topic_partitions: Sequence[int]) -> None: ...

    def revoked(self, topic_partitions: Sequence[int], drain: PendingDrain) -> None: ...

    def lost(self, topic_partitions: Sequence[int]) -> None: ...

    def records(self, topic_partition: int, era: int, records: Sequence[Record]) -> None: ...

    def position_gone(self, topic_partition: int, era: int, offset: int) -> None: ...


class Member:
    """Member of the group, with its client.

    Attributes:
        owned: Topic partitions that the listener was told it owns, even if that call is still on its way to the loop.
        rebalances: Number of assignments, revocations and losses.
    """

    def __init__(
        self,
        client: Client,
        settings: KafkaSettings,
        topic: Topic,
        *,
        orders: ConsumerCommands,
        guard: MembershipLease,
        probes: Probes,
        teller: Teller,
        clock: Clock,
        notices: Notices,
        others: OthersFind = others_find,
    ) -> None:
        self._client = client
        self._settings = settings
        self._topic = topic
        self._orders = orders
        self._guard = guard
        self._probes = probes
        self._teller = teller
        self._clock = clock
        self._notices = notices
        self._lanes = PartitionFlows(client, settings.in_flight_records_max, notices)
        self._failure: Exception | None = None
        self._leaving = False
        self._expelled_at: int | None = None
        self._joining = Joining(settings, clock.monotonic_ms(), others)
        self._given_up = False
        self.rebalances = 0

    @property
    def owned(self) -> frozenset[int]:
        return self._probes.owned

    @property
    def joined(self) -> bool:
        """Whether the group has given the member a share, possibly an empty one, and has not expelled it since."""
        return self._joining.joined

    def turn(self) -> None:
        """Executes commands, sends a probe if due, and reads one batch. Takes `poll_wait_ms` when idle."""
        self._guard.awake(self._clock.monotonic_ms())
        orders = self._orders.collect()
        for where, order in orders.items():
            if order.hint is not None and where[1] in self.owned:
                self._probes.hint(where[1], order.hint)
        self._lanes.carry_out(orders)
        self._probes.send_if_due(self._client, self._clock.monotonic_ms())
        for found in self._sorted():
            if isinstance(found, Read):
                self._teller.records(found.where[1], found.era, found.records)
            else:
                self._teller.position_gone(found.where[1], found.era, found.offset)
        if self._failure is not None:
            raise self._failure
        self._insist_on_lost()
        self._insist_on_joining()

    def hand_over(self, turned: Callable[[], None]) -> bool:
        """Drains for a planned end. Polls and probes continue, so that the membership lease lasts. Returns True when
        all was drained.
        """
        self._leaving = True
        owned = self.owned
        if not owned:
            return True
        drain = PendingDrain(self._clock.monotonic_ms() + self._settings.stop_drain_ms_max)
        self._stop_flows(owned)
        self._teller.revoked(sorted(owned), drain)
        # After an expulsion during the drain no owner is left that would report the drain as done.
        while not drain.is_done and self.owned and self._clock.monotonic_ms() < drain.deadline_ms:
            self.turn()
            turned()
        self._disown(owned)
        while self._probes.outstanding and self._guard.holds(self._clock.monotonic_ms()):
            self.turn()
            turned()
        return drain.is_done

    @property
    def why_no_goodbye(self) -> str | None:
        """Reason to skip the client's `close`; None when it is safe.

        With an unanswered commit `close` would wait until the coordinator is back, possibly for hours. A client that
        cannot reach its group cannot leave it either.
        """
        if self._given_up:
            return "its client is given up"
        return "the group's coordinator does not answer" if self._probes.outstanding else None

    def abandon(self) -> None:
        """Gives up the membership of a client that is gone. Nothing is owned any more, whichever callbacks came."""
        self._guard.membership_lost()
        self._joining.expelled(self._clock.monotonic_ms())
        if owned := self.owned:
            self._disown(owned)
            self._teller.lost(sorted(owned))
        self._probes.close()

    def on_commit(self, error: KafkaError | None, committed: Sequence[TopicPartition]) -> None:
        def answer() -> None:
            if error is not None and is_fatal(error):
                self._given_up = True
                raise ClientEnded(str(error))
            if self._probes.on_commit(error, committed) is ProbeVerdict.EXPELLED:
                # Report the loss at once: the client's own `on_lost` comes with its next heartbeat, later, or never. A
                # member that owns nothing has already noticed: if a position is assigned during its loss, the client
                # reports a revocation, and the drain's probe is then refused.
                if self.owned:
                    self._expelled_at = self._clock.monotonic_ms()
                self._lose(self.owned)

        self._courtesy(answer)

    def on_assign(self, parts: Sequence[TopicPartition]) -> None:
        def assign() -> None:
            self.rebalances += 1
            self._joining.given(self._clock.monotonic_ms())
            self._expelled_at = None
            new = sorted(set(self._ours(parts)) - self.owned)
            self._lanes.add(self._topic, new)
            # The client waits for this call. The actual assignment at the client follows with the positions.
            self._client.incremental_assign([])
            if new and not self._leaving:
                self._teller.gives(new)
                self._probes.owned |= frozenset(new)
                self._teller.assigned(new)

        self._courtesy(assign)

    def on_revoke(self, parts: Sequence[TopicPartition]) -> None:
        def revoke() -> None:
            self.rebalances += 1
            going = frozenset(self._ours(parts))
            self._stop_flows(going)
            if told := going & self.owned:
                self._drain(told)
            self._lanes.remove((self._topic.name, number) for number in going)
            if not self._lanes.held:
                # The client reported its loss as a revocation. If the group then assigns nothing, no further callback
                # comes.
                self._expelled_at = None

        self._courtesy(revoke)

    def on_lost(self, parts: Sequence[TopicPartition]) -> None:
        def lose() -> None:
            self.rebalances += 1
            going = frozenset(self._ours(parts))
            # The membership itself is lost, whichever topic partitions the client names.
            self._lose(self.owned)
            self._expelled_at = None
            self._lanes.remove((self._topic.name, number) for number in going)

        self._courtesy(lose)

    def _sorted(self) -> list[Read | PositionGone]:
        try:
            return self._lanes.sort(read_batch(self._client, self._settings))
        except ClientEnded:
            self._given_up = True
            raise

    def _insist_on_lost(self) -> None:
        """Raises if the client has not noticed its expulsion for a whole session: it would never get an assignment
        again.
        """
        if self._expelled_at is not None and self._clock.monotonic_ms() > self._expelled_at + self._settings.session_ms:
            raise RuntimeError("the client keeps a membership that the coordinator has ended")

    def _insist_on_joining(self) -> None:
        """Raises if the client fails to join its group, or finds no broker although other clients do."""
        now = self._clock.monotonic_ms()
        if self._guard.holds(now):
            self._joining.proven(now)
        try:
            if self._joining.is_overdue(self._client, now):
                raise RuntimeError("the client did not join its group in time")
        except (RuntimeError, CutOff):
            self._given_up = True
            raise

    def _drain(self, going: frozenset[int]) -> None:
        now = self._clock.monotonic_ms()
        # Carries the last hints and, after this callback, extends the membership lease for the remaining topic
        # partitions.
        self._probes.send(self._client, now)
        patience_ms = drain_ms(self._settings.drain_ms_max, self._guard.remaining_ms(now))
        drain = PendingDrain(now + patience_ms)
        self._teller.revoked(sorted(going), drain)
        if not drain.wait(now):
            self._notices("kafka_drain_cut", topic_partitions=sorted(going), patience_ms=patience_ms)
        self._disown(going)

    def _lose(self, going: frozenset[int]) -> None:
        self._guard.membership_lost()
        self._joining.expelled(self._clock.monotonic_ms())
        self._stop_flows(going)
        self._disown(going)
        if going:
            self._teller.lost(sorted(going))

    def _disown(self, going: frozenset[int]) -> None:
        self._probes.owned -= going
        self._probes.forget(going)

    def _stop_flows(self, numbers: Iterable[int]) -> None:
        self._lanes.stop((self._topic.name, number) for number in numbers)

    def _ours(self, parts: Sequence[TopicPartition]) -> list[int]:
        return [part.partition for part in parts if part.topic == self._topic.name]

    def _courtesy(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as failure:  # noqa: BLE001 - raised again by the next turn, outside the client's call stack
            self._failure = failure


class Callbacks:
    """Callbacks of a client. They forward to the member, and do nothing after the member's end.

    The client refers to its callbacks. Without this object they would keep a client that was dropped without a close
    alive, until another thread collects garbage and crashes in it.
    """

    def __init__(self) -> None:
        self.member: Member | None = None

    def on_commit(self, error: KafkaError | None, committed: Sequence[TopicPartition]) -> None:
        if self.member is not None:
            self.member.on_commit(error, committed)

    def on_assign(self, _client: object, parts: Sequence[TopicPartition]) -> None:
        if self.member is not None:
            self.member.on_assign(parts)

    def on_revoke(self, _client: object, parts: Sequence[TopicPartition]) -> None:
        if self.member is not None:
            self.member.on_revoke(parts)

    def on_lost(self, _client: object, parts: Sequence[TopicPartition]) -> None:
        if self.member is not None:
            self.member.on_lost(parts)
