"""A member with a client that is not there: deltas, drains, probes, losses, planned ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, TopicPartition

from tidegate_core.engine.membership_lease import MembershipLease
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.consumer_commands import ConsumerCommands
from tidegate_kafka.consumer.partition_flows import ClientEnded
from tidegate_kafka.group.commit_probes import Probes
from tidegate_kafka.group.group_member import Callbacks, Member
from tidegate_kafka.group.pending_drain import GUARD_MARGIN_MS, PendingDrain, drain_ms
from tidegate_ports.bus import Record, Topic

if TYPE_CHECKING:
    from tests.unit.tidegate_kafka.conftest import FakeClient, MakeRecord, ManualClock, Notes

Parts = Callable[[Iterable[int]], list[TopicPartition]]


class Told:
    """The loop's side: drains as `drains` says, remembers the rest."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []
        self.drains: Callable[[PendingDrain], None] = PendingDrain.done

    def gives(self, topic_partitions: Sequence[int]) -> None:
        """Followed by `assigned`."""

    def assigned(self, topic_partitions: Sequence[int]) -> None:
        self.events.append(("assigned", tuple(topic_partitions)))

    def revoked(self, topic_partitions: Sequence[int], drain: PendingDrain) -> None:
        self.events.append(("revoked", tuple(topic_partitions)))
        self.drains(drain)

    def lost(self, topic_partitions: Sequence[int]) -> None:
        self.events.append(("lost", tuple(topic_partitions)))

    def records(self, topic_partition: int, era: int, records: Sequence[Record]) -> None:
        self.events.append(("records", [each.offset for each in records]))

    def position_gone(self, topic_partition: int, era: int, offset: int) -> None:
        self.events.append(("position_gone", offset))


class Stage:
    """A member and everything around it."""

    def __init__(
        self, client: FakeClient, settings: KafkaSettings, topic: Topic, clock: ManualClock, notes: Notes
    ) -> None:
        self.client, self.topic, self.clock, self.notes = client, topic, clock, notes
        self.told = Told()
        self.orders = ConsumerCommands()
        self.guard = MembershipLease(settings.half_session_ms)
        self.probes = Probes(
            topic.name, self.guard, settings.probe_every_ms, lambda function, *rest: function(*rest), notes
        )
        self.member = Member(
            client,
            settings,
            topic,
            orders=self.orders,
            guard=self.guard,
            probes=self.probes,
            teller=self.told,
            clock=clock,
            notices=notes,
            others=lambda _: client.others_find_brokers,
        )

    def answer(self, code: int | None = None, index: int = -1) -> None:
        """The coordinator answers a commit, the last one unless said otherwise."""
        error = None if code is None else KafkaError(code)
        self.member.on_commit(error, self.client.commits[index])

    def proven(self) -> None:
        self.member.turn()
        self.answer()


def joined(stage: Stage) -> bool:
    """A call, so that the type checker does not take the last answer for granted."""
    return stage.member.joined


@pytest.fixture
def stage(client: FakeClient, settings: KafkaSettings, topic: Topic, clock: ManualClock, notes: Notes) -> Stage:
    return Stage(client, settings, topic, clock, notes)


def test_given_assignment_in_deltas_then_only_new_ones_are_told_and_empty_ones_are_confirmed(
    stage: Stage, parts: Parts
) -> None:
    stage.member.on_assign(parts([1, 0]))
    stage.member.on_assign(parts([]))
    stage.member.on_assign(parts([1, 2]))
    assert stage.told.events == [("assigned", (0, 1)), ("assigned", (2,))]
    assert stage.client.calls == ["assign []"] * 3, "the client gets its word each time, and reads nothing yet"
    assert stage.member.owned == {0, 1, 2}
    assert stage.member.rebalances == 3


def test_given_revocation_names_foreign_ones_then_only_ours_are_drained_and_given_back(
    stage: Stage, parts: Parts
) -> None:
    stage.member.on_assign(parts([0, 1]))
    stage.orders.seek((stage.topic.name, 1), 7)
    stage.member.turn()
    stage.member.on_revoke([*parts([1, 5]), TopicPartition("another", 0)])
    assert stage.told.events[-1] == ("revoked", (1,))
    assert stage.client.calls[-1] == "unassign []", "its flow was stopped before the drain"
    assert stage.client.assigned == {}
    assert stage.member.owned == {0}


def test_given_revocation_of_nothing_then_nobody_is_told(stage: Stage, parts: Parts) -> None:
    stage.member.on_revoke(parts([]))
    stage.member.on_revoke(parts([3]))
    assert stage.told.events == []
    assert stage.client.calls == ["unassign []", "unassign []"]


def test_given_drain_takes_too_long_then_the_client_lets_go_all_the_same(
    client: FakeClient, topic: Topic, clock: ManualClock, notes: Notes, parts: Parts
) -> None:
    stage = Stage(client, KafkaSettings(allow_plaintext=True, drain_ms_max=20), topic, clock, notes)
    stage.told.drains = lambda drain: None
    stage.member.on_assign(parts([0]))
    stage.member.on_revoke(parts([0]))
    assert notes.names() == ["kafka_drain_cut"]
    assert stage.member.owned == frozenset()


@pytest.mark.parametrize(
    ("remaining_ms", "patience_ms"),
    [
        pytest.param(3_000, 2_500, id="the guard outlasts the longest drain"),
        pytest.param(1_000, 1_000 - GUARD_MARGIN_MS, id="the drain ends before the guard"),
        pytest.param(100, 0, id="no time left"),
        pytest.param(0, 2_500, id="a lapsed guard protects nothing"),
    ],
)
def test_given_guard_then_a_drain_stays_below_it(remaining_ms: int, patience_ms: int) -> None:
    assert drain_ms(2_500, remaining_ms) == patience_ms


def test_given_lost_then_all_is_dropped_at_once_whatever_is_named(stage: Stage, parts: Parts) -> None:
    stage.member.on_assign(parts([0, 1]))
    stage.proven()
    assert stage.guard.holds(stage.clock.now)
    assert joined(stage)
    stage.member.on_lost(parts([0]))
    assert not joined(stage)
    assert stage.told.events[-1] == ("lost", (0, 1))
    assert not stage.guard.holds(stage.clock.now)
    assert stage.member.owned == frozenset()


def test_given_probe_is_due_then_one_is_sent_each_sixth_of_a_session(stage: Stage, parts: Parts) -> None:
    stage.member.turn()
    assert stage.client.commits == [], "a member without topic partitions has nothing to commit"
    stage.member.on_assign(parts([0]))
    for now in (0, 999, 1_000, 1_001, 2_000):
        stage.clock.now = now
        stage.member.turn()
    assert len(stage.client.commits) == 3


def test_given_no_hint_then_a_probe_repeats_what_is_committed(stage: Stage, parts: Parts) -> None:
    stage.client.committed_offset = 42
    stage.member.on_assign(parts([3, 4]))
    stage.member.turn()
    assert [(part.partition, part.offset) for part in stage.client.commits[-1]] == [(3, 42)]


async def test_given_no_hint_and_no_answer_then_the_probe_waits_for_better_times(stage: Stage, parts: Parts) -> None:
    stage.client.committed_fails = True
    stage.member.on_assign(parts([3]))
    asked = asyncio.get_running_loop().create_future()
    stage.probes.ask(3, asked)
    stage.member.turn()
    assert asked.result() is None
    assert not stage.probes.outstanding
    assert stage.member.owned == {3}


def test_given_hints_were_not_taken_then_they_ride_on_the_next_probe(stage: Stage, parts: Parts) -> None:
    stage.member.on_assign(parts([0, 1]))
    for number in (0, 1):
        stage.orders.hint((stage.topic.name, number), 5)
    stage.member.turn()
    stage.answer(KafkaError.REBALANCE_IN_PROGRESS)
    stage.clock.now = 1_000
    stage.member.turn()
    assert [part.partition for part in stage.client.commits[-1]] == [0, 1]


def test_given_hints_then_moved_ones_ride_on_the_probe_and_then_one_is_repeated(stage: Stage, parts: Parts) -> None:
    stage.member.on_assign(parts([0, 1, 2]))
    for number, offset in ((1, 5), (2, 6), (7, 9)):
        stage.orders.hint((stage.topic.name, number), offset)
    stage.member.turn()
    stage.clock.now = 1_000
    stage.member.turn()
    assert [[(part.partition, part.offset) for part in each] for each in stage.client.commits] == [
        [(1, 5), (2, 6)],
        [(1, 5)],
    ]


@pytest.mark.parametrize(
    "code", [KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError._TRANSPORT]
)
def test_given_unsettled_answer_then_the_guard_neither_grows_nor_ends(stage: Stage, parts: Parts, code: int) -> None:
    stage.member.on_assign(parts([0]))
    stage.proven()
    stage.clock.now = 1_000
    stage.member.turn()
    stage.answer(code)
    assert stage.guard.remaining_ms(1_000) == 2_000
    assert stage.member.owned == {0}


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID])
def test_given_expelled_then_it_is_lost_at_once_and_told_once(stage: Stage, parts: Parts, code: int) -> None:
    stage.member.on_assign(parts([0]))
    stage.proven()
    stage.clock.now = 1_000
    stage.member.turn()
    stage.answer(code)
    assert not stage.guard.holds(1_000)
    assert not joined(stage)
    stage.member.on_lost(parts([0]))
    assert [name for name, _ in stage.told.events] == ["assigned", "lost"]
    stage.clock.now = 20_000
    stage.member.turn()


def test_given_refusal_of_the_old_membership_then_the_new_one_stays(stage: Stage, parts: Parts) -> None:
    stage.member.on_assign(parts([0]))
    stage.member.turn()
    stage.member.on_lost(parts([0]))
    stage.member.on_assign(parts([0]))
    stage.clock.now = 1_000
    stage.proven()
    stage.answer(KafkaError.UNKNOWN_MEMBER_ID, index=0)
    assert stage.member.owned == {0}
    assert stage.guard.holds(1_000)


def test_given_client_does_not_notice_its_expulsion_then_it_is_replaced(stage: Stage, parts: Parts) -> None:
    stage.member.on_assign(parts([0]))
    stage.member.turn()
    stage.answer(KafkaError.UNKNOWN_MEMBER_ID)
    stage.clock.now = 6_001
    with pytest.raises(RuntimeError, match="coordinator has ended"):
        stage.member.turn()


def test_given_flows_that_stop_and_go_before_a_revocation_is_told_then_nothing_is_given_away_before_it_is_drained(
    client: FakeClient, topic: Topic, clock: ManualClock, notes: Notes, parts: Parts, a_record: MakeRecord
) -> None:
    """Review: librdkafka takes an unassignment for the answer to the revocation, and an assignment for that to what follows it."""
    stage = Stage(client, KafkaSettings(allow_plaintext=True, in_flight_records_max=4), topic, clock, notes)
    group = ["steady"]

    def calls(name: str, call: Callable[[list[TopicPartition]], None]) -> Callable[[list[TopicPartition]], None]:
        answers = {("unassign", "revoking"): "answered", ("assign", "answered"): "given away"}

        def called(partitions: list[TopicPartition]) -> None:
            group[0] = answers.get((name, group[0]), group[0])
            call(partitions)

        return called

    client.incremental_assign = calls("assign", client.incremental_assign)  # type: ignore[method-assign, assignment]
    client.incremental_unassign = calls("unassign", client.incremental_unassign)  # type: ignore[method-assign, assignment]
    stage.member.on_assign(parts([0, 1, 2]))
    for number in (1, 2):
        stage.orders.seek((topic.name, number), 0)
    client.batches = [[a_record(2, offset) for offset in range(4)]]
    stage.member.turn()
    assert set(client.assigned) == {(topic.name, 1)}, "the other one is full"

    def poll(timeout: float = -1) -> object:
        group[0] = "revoking"
        return first(timeout)

    first, client.poll = client.poll, poll  # type: ignore[method-assign, assignment]
    client.batches = [[a_record(1, offset) for offset in range(4)]]
    stage.member.turn()
    client.poll = first  # type: ignore[method-assign]
    told_in: list[str] = []

    def drained(drain: PendingDrain) -> None:
        told_in.append(group[0])
        drain.done()

    stage.told.drains = drained
    client.during_poll = [lambda: stage.member.on_revoke(parts([0]))]
    stage.orders.taken((topic.name, 2), 4)
    stage.member.turn()
    assert told_in == ["answered"]
    assert set(client.assigned) == {(topic.name, 2)}, "and it flows again"


def test_given_a_loss_that_the_client_takes_for_a_revocation_then_the_membership_that_follows_is_kept(
    stage: Stage, parts: Parts
) -> None:
    """Librdkafka forgets that an assignment is lost when a position is assigned before its callback: seen behind a freeze, with KIP-848."""
    stage.member.on_assign(parts([0, 1]))
    stage.proven()
    stage.clock.now = 4_000
    stage.member.on_revoke(parts([0, 1]))
    stage.answer(KafkaError.UNKNOWN_MEMBER_ID)
    stage.clock.now = 20_000
    stage.member.turn()
    stage.member.on_assign(parts([1]))
    stage.member.turn()
    assert [name for name, _ in stage.told.events] == ["assigned", "revoked", "assigned"]
    assert stage.member.owned == {1}


@pytest.mark.parametrize("share", [[0], []])
def test_given_an_expulsion_that_the_client_takes_for_a_revocation_then_it_is_not_replaced(
    stage: Stage, parts: Parts, share: list[int]
) -> None:
    """It joins anew, whatever it is given then; with KIP-848 a member that is given nothing is told nothing."""
    stage.member.on_assign(parts([0]))
    stage.proven()
    stage.clock.now = 1_000
    stage.member.turn()
    stage.answer(KafkaError.UNKNOWN_MEMBER_ID)
    stage.member.on_revoke(parts([0]))
    if share:
        stage.member.on_assign(parts(share))
    stage.clock.now = 7_001
    stage.member.turn()
    assert [name for name, _ in stage.told.events] == ["assigned", "lost", "assigned"][: 2 + len(share)]
    assert stage.member.owned == frozenset(share)


@pytest.mark.parametrize("told_by", ["a read", "a commit"])
def test_given_a_fatal_error_then_the_client_is_made_anew_without_a_goodbye(
    stage: Stage, parts: Parts, a_record: MakeRecord, told_by: str
) -> None:
    """Review: it joined nothing any more, and the node looked well for ever, with what it had been given and no guard."""
    fatal = KafkaError(KafkaError._FATAL, "GroupAuthorizationFailed", True)
    stage.member.on_assign(parts([0]))
    stage.proven()
    if told_by == "a read":
        stage.client.batches = [[a_record(0, 0, error=fatal)]]
    else:
        stage.clock.now = 1_000
        stage.member.turn()
        stage.member.on_commit(fatal, stage.client.commits[-1])
    with pytest.raises(ClientEnded):
        stage.member.turn()
    assert stage.member.why_no_goodbye is not None
    stage.member.abandon()
    assert [name for name, _ in stage.told.events] == ["assigned", "lost"]


async def test_given_proof_is_asked_for_then_the_next_probe_answers_for_what_is_owned(
    stage: Stage, parts: Parts
) -> None:
    stage.member.on_assign(parts([0, 1]))
    stage.proven()
    loop = asyncio.get_running_loop()
    ours, foreign, late = loop.create_future(), loop.create_future(), loop.create_future()
    stage.probes.ask(1, ours)
    stage.probes.ask(6, foreign)
    stage.member.turn()
    assert len(stage.client.commits) == 2, "asked for, so it does not wait until it is due"
    stage.answer()
    assert (ours.result(), foreign.result()) == (True, False)
    stage.probes.ask(1, late)
    stage.member.turn()
    stage.answer(KafkaError.REBALANCE_IN_PROGRESS)
    assert late.result() is None


async def test_given_membership_ends_then_who_waits_for_proof_is_told_that_nobody_knows(
    stage: Stage, parts: Parts
) -> None:
    stage.member.on_assign(parts([0]))
    sent, queued = asyncio.get_running_loop().create_future(), asyncio.get_running_loop().create_future()
    stage.probes.ask(0, sent)
    stage.member.turn()
    stage.probes.ask(0, queued)
    stage.member.abandon()
    assert (sent.result(), queued.result()) == (None, None)
    assert stage.told.events[-1] == ("lost", (0,))


def test_given_planned_end_then_probes_go_on_while_it_drains_and_goodbye_waits_for_their_answers(
    stage: Stage, parts: Parts
) -> None:
    drains: list[PendingDrain] = []
    stage.told.drains = drains.append
    stage.member.on_assign(parts([0]))
    stage.proven()
    turns = 0

    def turned() -> None:
        nonlocal turns
        turns += 1
        stage.clock.now += 500
        if turns == 4:
            drains[0].done()
        if turns == 6:
            stage.answer()

    assert stage.member.hand_over(turned)
    assert turns == 6
    assert len(stage.client.commits) == 2
    assert stage.member.why_no_goodbye is None
    stage.member.on_revoke(parts([0]))
    assert [name for name, _ in stage.told.events] == ["assigned", "revoked"], "drained before, so told once"


def test_given_planned_end_without_coordinator_then_it_ends_with_the_guard_and_without_goodbye(
    stage: Stage, parts: Parts
) -> None:
    stage.member.on_assign(parts([0]))
    stage.proven()
    stage.clock.now = 1_000
    stage.member.turn()

    def turned() -> None:
        stage.clock.now += 500

    assert stage.member.hand_over(turned)
    assert stage.member.why_no_goodbye is not None
    assert stage.clock.now == 3_000


def test_given_drain_of_planned_end_never_done_then_it_ends_at_its_deadline(stage: Stage, parts: Parts) -> None:
    stage.told.drains = lambda drain: None
    stage.member.on_assign(parts([0]))

    def turned() -> None:
        stage.clock.now += 1_000

    assert not stage.member.hand_over(turned)
    assert stage.clock.now == 10_000


def test_given_expelled_during_a_planned_end_then_nobody_waits_for_the_drain(stage: Stage, parts: Parts) -> None:
    """Who is told of the loss drops everything, and says nothing more about the drain."""
    stage.told.drains = lambda drain: None
    stage.member.on_assign(parts([0]))
    stage.proven()
    stage.clock.now = 1_000

    def turned() -> None:
        stage.clock.now += 500
        stage.answer(KafkaError.UNKNOWN_MEMBER_ID)

    stage.member.hand_over(turned)
    assert [name for name, _ in stage.told.events] == ["assigned", "revoked", "lost"]
    assert stage.clock.now < 3_000


def test_given_exception_inside_a_callback_then_the_next_turn_raises_it(stage: Stage, parts: Parts) -> None:
    def breaks(drain: PendingDrain) -> None:
        raise ZeroDivisionError

    stage.told.drains = breaks
    stage.member.on_assign(parts([0]))
    stage.member.on_revoke(parts([0]))
    with pytest.raises(ZeroDivisionError):
        stage.member.turn()


def test_given_records_and_lost_positions_then_both_are_told(stage: Stage, parts: Parts, a_record: MakeRecord) -> None:
    stage.member.on_assign(parts([0]))
    stage.orders.seek((stage.topic.name, 0), 3)
    gone = KafkaError(KafkaError._AUTO_OFFSET_RESET)
    stage.client.batches = [[a_record(0, 3), a_record(0, 4)], [a_record(0, 5, error=gone)]]
    stage.member.turn()
    stage.member.turn()
    assert stage.told.events[1:] == [("records", [3, 4]), ("position_gone", 5)]


def test_given_life_is_over_then_late_callbacks_find_nobody(stage: Stage, parts: Parts) -> None:
    callbacks = Callbacks()
    callbacks.member = stage.member
    callbacks.on_assign(None, parts([0]))
    assert stage.told.events == [("assigned", (0,))]

    callbacks.member = None
    callbacks.on_assign(None, parts([1]))
    callbacks.on_revoke(None, parts([0]))
    callbacks.on_lost(None, parts([0]))
    callbacks.on_commit(KafkaError(KafkaError.UNKNOWN_MEMBER_ID), parts([0]))

    assert stage.told.events == [("assigned", (0,))]
    assert (stage.member.owned, stage.member.rebalances) == (frozenset({0}), 1)
