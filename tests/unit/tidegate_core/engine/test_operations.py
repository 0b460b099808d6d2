"""The runner of operations: order, answers that come together, signals, and the end of everything."""

from __future__ import annotations

from typing import Any

from tidegate_core.engine.operations import Operation, Operations, Signal
from tidegate_core.rows.effects import EffectResult, Inspect, Inspected, Produced, Read, WakeUp

ONE, TWO, THREE = (Inspect("python", file) for file in ("one", "two", "three"))


def asking(log: list[Any], *effects: Any) -> Operation[None]:
    for effect in effects:
        answer = yield effect
        log.append(answer)


def test_given_one_effect_then_its_answer_resumes_the_operation() -> None:
    operations = Operations()
    log: list[Any] = []
    operations.start(asking(log, ONE))
    (ask,) = operations.asked
    assert ask.effect == ONE
    assert log == []
    operations.answer(EffectResult(ask.token, Inspected("no")))
    assert log == [Inspected("no")]
    assert operations._pending == {}


def test_given_a_tuple_of_effects_then_the_answers_come_together_in_the_order_asked() -> None:
    operations = Operations()
    log: list[Any] = []
    operations.start(asking(log, (ONE, TWO, THREE)))
    first, second, third = operations.asked
    operations.answer(EffectResult(third.token, Inspected("3")))
    operations.answer(EffectResult(first.token, Inspected("1")))
    assert log == []
    operations.answer(EffectResult(second.token, Inspected("2")))
    assert log == [(Inspected("1"), Inspected("2"), Inspected("3"))]


def test_given_an_empty_tuple_then_the_operation_goes_on_without_an_effect() -> None:
    operations = Operations()
    log: list[Any] = []
    operations.start(asking(log, ()))
    assert log == [()]
    assert operations.asked == []


def test_given_several_operations_then_they_go_on_in_the_order_of_their_answers() -> None:
    operations = Operations()
    log: list[Any] = []
    for effect in (ONE, TWO):
        operations.start(asking(log, effect))
    first, second = operations.asked
    operations.answer(EffectResult(second.token, Inspected("2")))
    operations.answer(EffectResult(first.token, Inspected("1")))
    assert log == [Inspected("2"), Inspected("1")]


def test_given_an_operation_started_by_another_then_it_begins_when_that_one_yields() -> None:
    operations = Operations()
    log: list[Any] = []

    def inner() -> Operation[None]:
        log.append("inner")
        yield ONE

    def outer() -> Operation[None]:
        operations.start(inner())
        log.append("outer")
        yield TWO

    operations.start(outer())
    assert log == ["outer", "inner"]
    assert [ask.effect for ask in operations.asked] == [TWO, ONE]


def test_given_an_answer_that_comes_twice_or_to_nobody_then_it_is_dropped() -> None:
    operations = Operations()
    log: list[Any] = []
    operations.start(asking(log, ONE, TWO))
    token = operations.asked[0].token
    operations.answer(EffectResult(token, Inspected("1")))
    operations.answer(EffectResult(token, Inspected("again")))
    operations.answer(EffectResult(999, Produced()))
    assert log == [Inspected("1")]


def test_given_something_told_then_its_token_is_zero_and_nobody_waits() -> None:
    operations = Operations()
    operations.tell(WakeUp(3))
    assert operations.asked[0].token == 0
    assert operations._pending == {}


def waiting(log: list[str], signal: Signal, name: str) -> Operation[None]:
    yield signal
    log.append(name)


def test_given_a_signal_with_several_who_wait_then_all_wake_in_order() -> None:
    operations, signal = Operations(), Signal("s")
    log: list[str] = []
    for name in "abc":
        operations.start(waiting(log, signal, name))
    operations.raise_(signal)
    assert log == ["a", "b", "c"]


def test_given_a_signal_that_nobody_waits_for_then_the_next_to_wait_goes_on_once() -> None:
    operations, signal = Operations(), Signal("s")
    log: list[str] = []
    operations.raise_(signal)
    operations.raise_(signal)
    operations.start(waiting(log, signal, "first"))
    operations.start(waiting(log, signal, "second"))
    assert log == ["first"]


def test_given_the_end_of_all_then_answers_still_to_come_resume_nobody() -> None:
    operations = Operations()
    log: list[Any] = []
    operations.start(asking(log, ONE))
    operations.start(asking(log, (TWO, Read(()))))
    assert all(operations.awaits(ask.token) for ask in operations.asked)
    operations.end_all()
    assert operations._pending == {}
    for ask in operations.asked:
        assert not operations.awaits(ask.token)
        operations.answer(EffectResult(ask.token, Produced()))
    assert log == []


def test_given_the_end_of_all_then_every_operation_is_closed_also_one_that_waits_for_a_signal() -> None:
    """Else it is collected some day in an order that nobody chose, in the middle of something else."""
    operations, closed = Operations(), []

    def kept_open(wanted: Any, name: str) -> Operation[None]:
        try:
            yield wanted
        finally:
            closed.append(name)

    def outer(name: str) -> Operation[None]:
        yield from kept_open(Signal("nobody else has it"), name)

    operations.start(kept_open(ONE, "effect"))
    operations.start(outer("signal"))
    operations.end_all()
    assert sorted(closed) == ["effect", "signal"]


def test_given_tokens_then_no_two_effects_share_one() -> None:
    operations = Operations()
    log: list[Any] = []
    for _ in range(3):
        operations.start(asking(log, (ONE, TWO)))
    tokens = [ask.token for ask in operations.asked]
    assert len(set(tokens)) == 6
    assert 0 not in tokens
