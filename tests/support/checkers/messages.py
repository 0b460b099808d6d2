"""Judges messages: none lost, none early, none after its cancel, and repeats only as a crash may cause them (I8)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tests.support.checkers.faults import Fault
from tests.support.checkers.hand_over_spans import (
    CHECKPOINT_WRITE_MS,
    REPEATED_AFTER_MS_MAX,
    REPEATED_MAX,
    REPEATED_SPAN_MS,
    Unrest,
)
from tests.support.checkers.stops import NEAR_MS

_COVERED_AFTER_MS = REPEATED_SPAN_MS + CHECKPOINT_WRITE_MS
ON_THE_WIRE_MS = 1_000
"""A record that was in the broker's socket when its sender was killed is appended a moment later."""
TAKEN_OVER_MS_MIN = 4_000
"""Nobody else owns a killed node's shards sooner: a session of 6 s, a heartbeat every second, and one that came late."""
GUARD_MS = 4_000
"""So long after a cut a node may still send: half a session of 6 s, and a moment between its look at the guard and the send."""
LATE_COPY_MS_MAX = 10_000
"""What was kept comes at once when the way is open; this is for a busy machine."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that was asked for.

    Attributes:
        number: Of the client's own; stands in the payload.
        nominal: When it was to be delivered, ms since the epoch.
        must: `deliver`, `never` (its cancel was acknowledged as such) or `may` (its cancel or replacement came about when it
            was due, or the broker did not acknowledge its request).
        not_after: From this append time on a delivery is stale; None where nothing ended it.
        unanswered: Request id of its cancel or replacement that the broker has and nobody answered.
        cancel_answered_at: When its cancel was answered, ms since the epoch; None without one, or while it is not.
    """

    number: int
    nominal: int
    must: Literal["deliver", "never", "may"] = "deliver"
    not_after: int | None = None
    unanswered: str | None = None
    cancel_answered_at: int | None = None

    @property
    def is_cancel_near(self) -> bool:
        return self.cancel_answered_at is not None and abs(self.cancel_answered_at - self.nominal) <= NEAR_MS


@dataclass(frozen=True, slots=True)
class Delivery:
    """A record on the sink's topic.

    Attributes:
        number: From the payload.
        id: Header `tidegate-id`; begins with the shard.
        nominal: Header `tidegate-nominal`, ms since the epoch.
        appended_at: By the broker, ms since the epoch.
    """

    number: int
    id: str
    nominal: int
    appended_at: int

    @property
    def shard(self) -> int:
        return int(self.id.partition("-")[0])


@dataclass(frozen=True, slots=True)
class Crash:
    """A node was killed, or could not finish handing over in time.

    Attributes:
        at: ms since the epoch.
        shards: That it owned.
        served_at: When others served all of them, ms since the epoch.
        alone_ms: For so long nobody else can have owned them: one that was told to hand over, and was cut, is followed at once.
        last_messages: So many of each shard's last messages may repeat, however long ago they were sent: all that I8 allows where
            the store could not be written to. 0 where it could: then checkpoints came in time.
    """

    at: int
    shards: frozenset[int]
    served_at: int
    alone_ms: int = TAKEN_OVER_MS_MIN
    last_messages: int = 0


@dataclass(frozen=True, slots=True)
class Wire:
    """What a node had sent was kept by the network, or by its own stopped process, and arrived later: nobody can call it back.

    Attributes:
        at: When it was cut off or stopped, ms since the epoch.
        healed_at: When what was kept could arrive.
        shards: That it owned.
    """

    at: int
    healed_at: int
    shards: frozenset[int]

    def explains(self, delivery: Delivery) -> bool:
        """Whether it may be such a late copy: due while the node could still prove that it was the owner, come at the end."""
        return (
            delivery.shard in self.shards
            and delivery.nominal <= self.at + GUARD_MS
            and -ON_THE_WIRE_MS <= delivery.appended_at - self.healed_at <= LATE_COPY_MS_MAX
        )


def judge_messages(
    sent: Sequence[Sent],
    deliveries: Sequence[Delivery],
    crashes: Sequence[Crash],
    wires: Sequence[Wire] = (),
    unrests: Sequence[Unrest] = (),
    hint: Callable[[Delivery, Delivery], str] = lambda first, second: "",
) -> list[Fault]:
    """Judges a sink after everything was due and had time to arrive.

    Args:
        sent: What clients asked for.
        deliveries: On the sink.
        crashes: Falls that the tests themselves made; with `wires` and `unrests` all that lets a message repeat.
        wires: What was kept on its way, and came late.
        unrests: From when to when shards changed hands because of what was done to nodes.
        hint: Words for who looks into a repeat that none of these explains, such as what nodes said about then.
    """
    by_number: dict[int, list[Delivery]] = defaultdict(list)
    needed = frozenset(message.number for message in sent if message.must == "deliver")
    for delivery in on_time_copies(deliveries, needed, wires):
        by_number[delivery.number].append(delivery)
    faults = [
        Fault("extra", f"message {number} was never sent") for number in by_number.keys() - {m.number for m in sent}
    ]
    for message in sent:
        faults += _judge_one(message, by_number[message.number])
    faults += _wrong_ids(by_number)
    faults += _judge_repeats(by_number.values(), crashes, unrests, hint)
    return faults


def on_time_copies(deliveries: Iterable[Delivery], needed: frozenset[int], wires: Sequence[Wire]) -> Sequence[Delivery]:
    """Returns the deliveries in the order of their coming, without late copies that a wire explains.

    Args:
        deliveries: All.
        needed: Numbers of messages that have to come: their first copy is none that nobody needs.
        wires: What may have kept some.
    """
    kept: list[Delivery] = []
    come: set[int] = set()
    ordered = sorted(deliveries, key=lambda each: each.appended_at)
    on_time = {each.number for each in ordered if not any(wire.explains(each) for wire in wires)}
    for delivery in ordered:
        late = any(wire.explains(delivery) for wire in wires)
        first = delivery.number in needed and delivery.number not in on_time and delivery.number not in come
        if not late or first:
            kept.append(delivery)
            come.add(delivery.number)
    return kept


def _judge_one(message: Sent, copies: Sequence[Delivery]) -> Iterable[Fault]:
    name = f"message {message.number}"
    if message.must == "deliver" and not copies:
        yield Fault("lost", f"{name}, due at {message.nominal}")
    if message.must == "never" and copies:
        yield Fault("stale", f"{name} was acknowledged as cancelled, delivered at {copies[0].appended_at}")
    if message.unanswered is not None:
        yield Fault("unanswered", f"{message.unanswered}, a second thought about {name}, due at {message.nominal}")
    for copy in copies:
        if copy.appended_at < message.nominal:
            yield Fault("early", f"{name}: {message.nominal - copy.appended_at} ms before its time")
        if copy.nominal != message.nominal:
            yield Fault("wrong_id", f"{name}: nominal {copy.nominal} in its header, {message.nominal} was asked for")
        if message.not_after is not None and copy.appended_at >= message.not_after:
            yield Fault("stale", f"{name}: delivered {copy.appended_at - message.not_after} ms after it was replaced")


def _wrong_ids(by_number: dict[int, list[Delivery]]) -> Iterable[Fault]:
    ids = {number: {copy.id for copy in copies} for number, copies in by_number.items() if copies}
    for number, found in ids.items():
        if len(found) > 1:
            yield Fault("wrong_id", f"message {number} came with the ids {', '.join(sorted(found))}")
    used = Counter(each for found in ids.values() for each in found)
    for each, count in used.items():
        if count > 1:
            yield Fault("wrong_id", f"id {each} stands on {count} different messages")


def _judge_repeats(
    deliveries: Iterable[Sequence[Delivery]],
    crashes: Sequence[Crash],
    unrests: Sequence[Unrest],
    hint: Callable[[Delivery, Delivery], str],
) -> Iterable[Fault]:
    of_messages = [copies for copies in deliveries if copies]
    firsts: dict[int, list[Delivery]] = defaultdict(list)
    for copies in of_messages:
        firsts[copies[0].shard].append(copies[0])
    repeated: Counter[tuple[str, int, int]] = Counter()
    for copies in of_messages:
        for first, second in pairwise(copies):
            others = firsts[first.shard]
            crash = _cause(first, second, crashes, others)
            unrest = next((each for each in unrests if each.explains(first, second, others)), None)
            if crash is not None:
                repeated["crash", crash.at, first.shard] += 1
            elif unrest is not None:
                repeated["unrest", unrest.begin, first.shard] += 1
            else:
                yield Fault(
                    "repeated",
                    f"message {first.number} of shard {first.shard}: at {first.appended_at} and {second.appended_at}, "
                    f"no crash of its owner explains it{hint(first, second)}",
                )
    for (what, at, shard), count in repeated.items():
        if count > REPEATED_MAX:
            yield Fault("repeated", f"{count} messages of shard {shard} after the {what} at {at}")


def _cause(
    first: Delivery, second: Delivery, crashes: Iterable[Crash], others: Sequence[Delivery] = ()
) -> Crash | None:
    """Returns the crash that explains it; `others` are the first deliveries of the shard's messages."""
    for crash in crashes:
        after = second.appended_at >= crash.at + crash.alone_ms
        soon = second.appended_at <= crash.served_at + REPEATED_AFTER_MS_MAX
        # The last look is the dear one, and a long run has hundreds of crashes.
        if (
            after
            and soon
            and (
                _may_repeat(first, crash)
                or _was_held_up(first, crash, others)
                or _is_among_the_last(first, crash, others)
            )
        ):
            return crash
    return None


def _may_repeat(first: Delivery, crash: Crash) -> bool:
    return first.shard in crash.shards and -ON_THE_WIRE_MS <= crash.at - first.appended_at <= _COVERED_AFTER_MS


def _is_among_the_last(first: Delivery, crash: Crash, others: Iterable[Delivery]) -> bool:
    behind = sum(first.appended_at < other.appended_at <= crash.at for other in others)
    return first.shard in crash.shards and first.appended_at <= crash.at and behind < crash.last_messages


def _was_held_up(first: Delivery, crash: Crash, others: Iterable[Delivery]) -> bool:
    """Whether no checkpoint could pass it before the crash, however long ago it was sent: one with an earlier place was late.

    That is the other half of the bound: it repeats among at most 1,000, which are counted. What was created late has its place not at its
    time but behind what had been sent by then (`Checkpoints.slot_for`), and at the latest where it was sent itself.
    """
    due_before = (
        other
        for other in others
        if (other.nominal <= first.nominal or other.nominal < first.appended_at) and other.number != first.number
    )
    return (
        first.shard in crash.shards
        and first.appended_at <= crash.at
        and any(other.appended_at >= crash.at - _COVERED_AFTER_MS for other in due_before)
    )


def repeats_after(crash: Crash, deliveries: Iterable[Delivery]) -> tuple[int, int]:
    """Returns how many messages a crash repeated, and how many it might have: all that its shards had sent shortly before."""
    copies: dict[int, list[Delivery]] = defaultdict(list)
    for delivery in sorted(deliveries, key=lambda each: each.appended_at):
        copies[delivery.number].append(delivery)
    might = [each for each in copies.values() if any(_may_repeat(copy, crash) for copy in each)]
    repeated = [each for each in might if any(_cause(*pair, [crash]) for pair in pairwise(each))]
    return len(repeated), len(might)


def repeats_of(deliveries: Iterable[Delivery]) -> int:
    """Returns how many deliveries were not the first of their message."""
    return sum(count - 1 for count in Counter(delivery.number for delivery in deliveries).values())
