"""What is stored too late is measured again, with more time, and not for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from tests.benchmarks.rig import one_shot_messages
from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.one_shot_messages import TRIES, OneShots, TooLate, fire_one_shots

PLAN = OneShots(messages=10, over_s=1.0, ahead_s=10.0)


class Waited:
    """A consumer that says how often it was waited for."""

    def __init__(self) -> None:
        self.times = 0

    def wait(self, _: float) -> None:
        self.times += 1


class FakeStack:
    """Names topics; their consumer is the same."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.consumer = Waited()

    def sink_topic(self) -> str:
        self.topics.append(f"topic-{len(self.topics)}")
        return self.topics[-1]

    @contextmanager
    def consumer_of(self, _: str, __: int) -> Iterator[Waited]:
        yield self.consumer


def fire(monkeypatch: pytest.MonkeyPatch, stack: FakeStack, late_times: int) -> Any:
    def measured(_: Stack, plan: OneShots, topic: str, __: object) -> dict[str, float]:
        if len(stack.topics) <= late_times:
            raise TooLate(topic)
        return {"asked_ahead_s": plan.ahead_s}

    monkeypatch.setattr(one_shot_messages, "_measured", measured)
    return fire_one_shots(cast(Stack, stack), PLAN)


def test_given_a_machine_that_never_gets_there_then_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = FakeStack()
    with pytest.raises(TooLate):
        fire(monkeypatch, stack, late_times=TRIES)
    assert len(stack.topics) == TRIES
