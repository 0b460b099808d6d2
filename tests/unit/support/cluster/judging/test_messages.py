from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.checkers.messages import Crash, Delivery, Sent, Wire, judge_messages, repeats_of

CRASH = Crash(at=100_000, shards=frozenset({3, 11}), served_at=107_500)


def a_delivery(number: int, at: int, nominal: int | None = None, shard: int = 3, name: str = "") -> Delivery:
    return Delivery(number, f"{shard:04d}-{name or number}", at - 20 if nominal is None else nominal, at)


def kinds(sent: Sequence[Sent], deliveries: Sequence[Delivery], crashes: Sequence[Crash] = ()) -> list[str]:
    return [fault.kind for fault in judge_messages(sent, deliveries, crashes)]


def test_given_each_message_once_and_on_time_then_there_is_no_fault() -> None:
    assert kinds([Sent(1, 980), Sent(2, 2_000)], [a_delivery(1, 1_000), a_delivery(2, 2_000, 2_000)]) == []


@pytest.mark.parametrize(
    ("sent", "deliveries", "expected"),
    [
        pytest.param(Sent(1, 980), [], ["lost"], id="never came"),
        pytest.param(Sent(1, 1_001), [a_delivery(1, 1_000, 1_001)], ["early"], id="a millisecond early"),
        pytest.param(Sent(1, 980), [a_delivery(1, 1_000), a_delivery(2, 1_000)], ["extra"], id="from nowhere"),
        pytest.param(Sent(1, 980, "never"), [a_delivery(1, 1_000)], ["stale"], id="cancelled and sent"),
        pytest.param(Sent(1, 980, "may", 999), [a_delivery(1, 1_000)], ["stale"], id="sent after its replacement"),
        pytest.param(Sent(1, 980, "may", unanswered="cancel-1"), [], ["unanswered"], id="nobody answered its cancel"),
        pytest.param(Sent(1, 900), [a_delivery(1, 1_000)], ["wrong_id"], id="another nominal instant in its header"),
    ],
)
def test_given_one_message_then_its_fault_is_named(sent: Sent, deliveries: list[Delivery], expected: list[str]) -> None:
    assert kinds([sent], deliveries) == expected


@pytest.mark.parametrize(
    ("first", "second", "shard", "expected"),
    [
        pytest.param(99_000, 107_000, 3, [], id="sent a second before the crash"),
        pytest.param(93_000, 107_000, 3, ["repeated"], id="sent long before it"),
        pytest.param(99_000, 107_000, 4, ["repeated"], id="of a shard that did not crash"),
        pytest.param(99_000, 103_900, 3, ["repeated"], id="again before anybody else can have owned the shard"),
    ],
)
def test_given_a_repeat_then_only_a_crash_of_its_owner_explains_it(
    first: int, second: int, shard: int, expected: list[str]
) -> None:
    copies = [a_delivery(1, first, 90_000, shard), a_delivery(1, second, 90_000, shard)]

    assert kinds([Sent(1, 90_000)], copies, [CRASH]) == expected
    assert repeats_of(copies) == 1


def test_given_a_hand_over_that_was_cut_then_its_repeats_may_follow_at_once() -> None:
    copies = [a_delivery(1, 99_000, 90_000), a_delivery(1, 100_500, 90_000)]
    cut = Crash(100_000, frozenset({3}), 106_000, alone_ms=0)

    assert kinds([Sent(1, 90_000)], copies, [CRASH]) == ["repeated"]
    assert kinds([Sent(1, 90_000)], copies, [cut]) == []


@pytest.mark.parametrize(
    ("late", "nominal", "shard", "expected"),
    [
        pytest.param(95_000, 79_000, 3, [], id="one that was due before it came within the bound"),
        pytest.param(93_000, 79_000, 3, ["repeated"], id="that one came early enough to be passed too"),
    ],
)
def test_given_a_repeat_of_long_ago_then_only_one_that_no_checkpoint_could_pass_explains_it(
    late: int, nominal: int, shard: int, expected: list[str]
) -> None:
    """A node that is starved of its processor writes rows of a burst for 20 s, while others of that shard are delivered."""
    copies = [a_delivery(1, 81_000, 80_000), a_delivery(1, 107_000, 80_000), a_delivery(2, late, nominal, shard)]

    assert kinds([Sent(1, 80_000), Sent(2, nominal)], copies, [CRASH]) == expected


@pytest.mark.parametrize(
    ("held_up_until", "nominal", "expected"),
    [
        pytest.param(95_000, 80_500, [], id="one that was due before it was sent"),
        pytest.param(95_000, 81_000, ["repeated"], id="that one was due when it had been sent"),
    ],
)
def test_given_a_repeat_of_what_was_created_late_then_one_whose_place_may_be_before_its_own_explains_it(
    held_up_until: int, nominal: int, expected: list[str]
) -> None:
    """Eight creates waited in an inbox for two minutes, so that their places were behind rows of a burst that a replay had to bring: no
    checkpoint passed those for 25 s, and the next owner sent all of it again (`tests/cluster/test_kills.py` on a starved machine).
    """
    late = [a_delivery(1, at, 30_000) for at in (81_000, 107_000)]
    copies = [*late, a_delivery(2, held_up_until, nominal)]

    assert kinds([Sent(1, 30_000), Sent(2, nominal)], copies, [CRASH]) == expected


def test_given_more_than_a_thousand_repeats_of_a_shard_then_the_bound_is_broken() -> None:
    sent = [Sent(number, 90_000) for number in range(1_001)]
    copies = [a_delivery(message.number, at, 90_000) for message in sent for at in (99_000, 107_000)]

    assert kinds(sent, copies, [CRASH]) == ["repeated"]
    assert kinds(sent[1:], copies[2:], [CRASH]) == []


def test_given_a_repeat_under_another_id_then_the_id_is_not_stable() -> None:
    copies = [a_delivery(1, 99_000, 90_000, name="a"), a_delivery(1, 107_000, 90_000, name="b")]

    assert kinds([Sent(1, 90_000)], copies, [CRASH]) == ["wrong_id"]


def test_given_two_messages_under_one_id_then_it_is_not_theirs() -> None:
    copies = [a_delivery(1, 1_000, 980, name="a"), a_delivery(2, 1_000, 980, name="a")]

    assert kinds([Sent(1, 980), Sent(2, 980)], copies) == ["wrong_id"]


CUT = Wire(at=100_000, healed_at=130_000, shards=frozenset({3}))


@pytest.mark.parametrize(
    ("sent", "deliveries", "expected"),
    [
        pytest.param(Sent(1, 99_000), [(101_000, 3), (130_200, 3)], [], id="a copy that the cut had kept"),
        pytest.param(Sent(1, 99_000), [(101_000, 3), (128_000, 3)], ["repeated"], id="a copy amid the cut"),
        pytest.param(Sent(1, 99_000, "never"), [(128_000, 3)], ["stale"], id="cancelled, and sent amid the cut"),
    ],
)
def test_given_a_cut_that_kept_what_was_sent_then_only_late_copies_are_explained_by_it(
    sent: Sent, deliveries: list[tuple[int, int]], expected: list[str]
) -> None:
    copies = [a_delivery(1, at, sent.nominal, shard, "1") for at, shard in deliveries]
    assert [fault.kind for fault in judge_messages([sent], copies, [], [CUT])] == expected


@pytest.mark.parametrize(
    ("last_messages", "expected"),
    [pytest.param(2, ["repeated"], id="two were sent behind it"), pytest.param(3, [], id="the third last")],
)
def test_given_a_store_that_took_no_checkpoint_then_the_last_messages_may_repeat_however_old(
    last_messages: int, expected: list[str]
) -> None:
    """I8's other half: 1,000 messages of a shard."""
    crash = Crash(at=100_000, shards=frozenset({3}), served_at=107_500, last_messages=last_messages)
    behind = [a_delivery(2, 92_000), a_delivery(3, 99_000)]
    deliveries = [a_delivery(1, 80_000), *behind, a_delivery(1, 107_000, 79_980)]
    sent = [Sent(1, 79_980), Sent(2, 91_980), Sent(3, 98_980)]
    assert [fault.kind for fault in judge_messages(sent, deliveries, [crash])] == expected
