"""What the parts of an actor share: a clock that never goes back, alarms, and transactions sent until their fate is known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import NOW, a_holding
from tidegate_core.engine.actor_context import (
    ERROR_CHARACTERS_MAX,
    ActorContext,
    Countdown,
    Fenced,
    InvalidRead,
    InvalidWrite,
)
from tidegate_core.engine.operations import Operation
from tidegate_core.rows.effects import (
    Commit,
    Committed,
    EffectResult,
    EndOffsets,
    Invalid,
    Notice,
    NotProduced,
    Produce,
    Produced,
    Read,
    ReadEndOffsets,
    Refused,
    Result,
    Unavailable,
)
from tidegate_core.rows.store_operations import Batch, Key, Put, Transaction

KEY = Key("SH#0000", "X")


def a_transaction(token: str = "t-1") -> Transaction:
    return Transaction("some", (Put(KEY, {"pk": KEY.pk, "sk": KEY.sk, "w": token}),), token, KEY)


class Talk:
    """One operation with its host; `answer` goes to what was asked last."""

    def __init__(self, make: Any) -> None:
        self.host = ActorContext(a_holding())
        self.host.now = NOW
        self.result: object = None
        self.host.operations.start(self._keep(make(self.host)))

    def _keep(self, operation: Operation[object]) -> Operation[None]:
        self.result = yield from operation

    def answer(self, result: Result) -> None:
        self.host.operations.answer(EffectResult(self.host.operations.asked[-1].token, result))

    def pass_time(self) -> None:
        wake = self.host.next_wake()
        assert wake is not None
        self.host.now = wake
        self.host.ring()

    @property
    def sent(self) -> list[Transaction]:
        return [ask.effect.transaction for ask in self.host.operations.asked if isinstance(ask.effect, Commit)]


@pytest.mark.parametrize("doubt", [Unavailable("store"), Refused(())], ids=["no answer", "conflict"])
def test_given_doubt_then_the_very_same_transaction_is_sent_again_after_a_pause(doubt: Result) -> None:
    talk = Talk(lambda host: host.commit_until_settled(a_transaction()))
    talk.answer(doubt)
    assert len(talk.sent) == 1
    talk.pass_time()
    talk.answer(Committed())
    assert talk.sent == [a_transaction(), a_transaction()]
    assert talk.result == Committed()


def test_given_the_own_success_met_as_a_refusal_then_it_counts_as_success() -> None:
    talk = Talk(lambda host: host.commit_until_settled(a_transaction("mine")))
    talk.answer(Refused(((KEY, {"pk": KEY.pk, "sk": KEY.sk, "w": "mine"}),)))
    assert talk.result == Committed()


def test_given_a_refusal_by_somebody_elses_write_then_it_is_handed_on() -> None:
    talk = Talk(lambda host: host.commit_until_settled(a_transaction("mine")))
    refusal = Refused(((KEY, {"pk": KEY.pk, "sk": KEY.sk, "w": "theirs"}), (KEY, None)))
    talk.answer(refusal)
    assert talk.result == refusal


def test_given_a_read_without_answer_then_it_is_asked_again_with_growing_pauses() -> None:
    talk = Talk(lambda host: host.read_for_good(ReadEndOffsets("t")))
    pauses = []
    for _ in range(7):
        talk.answer(Unavailable("broker"))
        before = talk.host.now
        talk.pass_time()
        pauses.append(talk.host.now - before)
    talk.answer(EndOffsets({}))
    assert talk.result == EndOffsets({})
    assert all(100 <= pause < 4_000 for pause in pauses)
    assert pauses[-1] > pauses[0]


def test_given_a_batch_that_the_store_never_takes_then_its_author_hears_of_it_with_its_keys() -> None:
    def write(host: ActorContext) -> Operation[object]:
        try:
            yield from host.write_for_good(Batch("some", a_transaction().actions[:1]))  # type: ignore[arg-type]  # a put
        except InvalidWrite as error:
            return error.keys
        return None

    talk = Talk(write)
    talk.answer(Unavailable("store"))
    talk.pass_time()
    talk.answer(Invalid("too large"))
    assert talk.result == (KEY,)


def test_given_a_read_that_the_store_never_answers_then_its_author_hears_of_it() -> None:
    def read(host: ActorContext) -> Operation[object]:
        try:
            return (yield from host.read_for_good(Read((KEY,))))
        except InvalidRead as error:
            return error.keys

    talk = Talk(read)
    talk.answer(Invalid("the key is too long"))
    assert talk.result == (KEY,)


def test_given_alarms_then_they_ring_at_their_time_and_in_their_order() -> None:
    host, rung = ActorContext(a_holding()), []
    for instant, name in ((30, "c"), (10, "a"), (10, "b")):
        host.call_at(instant, lambda name=name: rung.append(name))  # type: ignore[misc]  # bound now, not at the call
    assert host.next_wake() == 10
    host.now = 10
    host.ring()
    assert rung == ["a", "b"]
    assert host.next_wake() == 30


def test_given_routine_alarms_then_what_is_due_is_asked_for_without_them() -> None:
    host = ActorContext(a_holding())
    host.call_at(10, lambda: None, routine=True)
    assert (host.next_wake(), host.next_due()) == (10, None)
    host.call_at(30, lambda: None)
    assert (host.next_wake(), host.next_due()) == (10, 30)


def test_given_a_new_life_then_alarms_and_operations_of_the_old_one_are_gone() -> None:
    talk = Talk(lambda host: host.commit_until_settled(a_transaction()))
    talk.host.call_at(NOW + 1, lambda: pytest.fail("rang in the next life"))
    talk.host.new_life()
    talk.answer(Committed())
    talk.host.now = NOW + 10
    talk.host.ring()
    assert talk.result is None
    assert talk.host.next_wake() is None


def test_given_tokens_then_two_hosts_never_make_the_same() -> None:
    hosts = [
        ActorContext(a_holding("one")),
        ActorContext(a_holding("two")),
        ActorContext(a_holding("one", topic_partition=1, topic_partitions=2)),
    ]
    tokens = [host.token() for host in hosts for _ in range(5)]
    assert len(set(tokens)) == len(tokens)


def test_given_an_owner_and_a_salt_then_the_spread_is_stable_and_inside() -> None:
    one, other = ActorContext(a_holding("one")), ActorContext(a_holding("other"))
    assert one.jitter("x", 500) == ActorContext(a_holding("one")).jitter("x", 500)
    assert 0 <= one.jitter("x", 500) < 500
    assert one.jitter("x", 500) != other.jitter("x", 500)
    assert one.jitter("x", 0) == 0
    assert one.jitter("x", 10**9) == (1 * ord("o") + 2 * ord("n") + 3 * ord("e") + 4 * ord("x")) * 7919


def test_given_a_transaction_that_the_store_will_never_take_then_its_author_hears_of_it_and_what_it_touches() -> None:
    def attempt(host: ActorContext) -> Operation[object]:
        try:
            return (yield from host.commit_until_settled(a_transaction()))
        except InvalidWrite as error:
            return error

    talk = Talk(attempt)
    talk.answer(Invalid("too large"))
    assert isinstance(talk.result, InvalidWrite)
    assert talk.result.keys == (KEY,)
    assert "too large" in str(talk.result)


@pytest.mark.parametrize(("last", "result"), [(Produced(), None), (NotProduced("refused", "too large"), "too large")])
def test_given_a_record_of_ours_then_it_is_sent_until_it_is_there_or_never_will_be(
    last: Result, result: str | None
) -> None:
    talk = Talk(lambda host: host.produce_for_good(Produce("t", b"k", b"v")))
    for _ in range(6):
        talk.answer(NotProduced("unavailable", "away"))
        talk.pass_time()
    talk.answer(last)
    assert talk.result == result
    assert talk.host.now - NOW < 20_000
    assert len(talk.host.operations.asked) == 7


def test_given_an_operation_that_fails_then_it_is_told_with_what_it_was_about_and_nothing_else_stops() -> None:
    def broken() -> Operation[None]:
        yield ReadEndOffsets("t")
        raise KeyError("x" * 5_000)

    def whole(host: ActorContext) -> Operation[str]:
        host.start_safely("adopt", "run-1", broken())
        yield ReadEndOffsets("u")
        return "done"

    talk = Talk(whole)
    asked = {ask.effect: ask.token for ask in talk.host.operations.asked}
    talk.host.operations.answer(EffectResult(asked[ReadEndOffsets("t")], EndOffsets({})))
    talk.host.operations.answer(EffectResult(asked[ReadEndOffsets("u")], EndOffsets({})))
    assert talk.result == "done"
    (notice,) = [ask.effect for ask in talk.host.operations.asked if isinstance(ask.effect, Notice)]
    assert (notice.event, notice.fields["name"], notice.fields["about"]) == ("decision_failed", "adopt", "run-1")
    assert len(str(notice.fields["error"])) == ERROR_CHARACTERS_MAX


def test_given_an_operation_that_is_fenced_then_that_is_no_failure_of_its_own() -> None:
    def fenced() -> Operation[None]:
        yield ReadEndOffsets("t")
        raise Fenced(KEY)

    host = ActorContext(a_holding())
    host.start_safely("adopt", "run-1", fenced())
    (asked,) = host.operations.asked
    with pytest.raises(Fenced):
        host.operations.answer(EffectResult(asked.token, EndOffsets({})))
    assert host.operations.asked == [asked]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_given_a_countdown_then_it_is_waited_for_until_all_are_through(count: int) -> None:
    host = ActorContext(a_holding())
    countdown = Countdown(host, count)
    done: list[bool] = []

    def wait() -> Operation[None]:
        yield from countdown.wait()
        done.append(True)

    host.operations.start(wait())
    for _ in range(count):
        assert done == []
        countdown.down()
    assert done == [True]
