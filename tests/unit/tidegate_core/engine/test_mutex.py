"""Operations that take turns: one is under way, and none is held up by one that failed."""

from __future__ import annotations

import pytest

from tests.support.builders import a_holding
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Mutex, Operation, Signal


class Stopped(Exception):
    """One of them fails."""


@pytest.fixture
def host() -> ActorContext:
    return ActorContext(a_holding("node-1"))


class Work:
    """Operations that note their steps, and end when they are told to."""

    def __init__(self, host: ActorContext) -> None:
        self.host = host
        self.turn = Mutex(host.operations, "turn")
        self.steps: list[str] = []
        self.go_on = {name: Signal(name) for name in ("one", "two", "three")}

    def start(self, name: str, *, fails: bool = False) -> None:
        self.host.operations.start(self._taken(name, fails))

    def end(self, name: str) -> None:
        self.host.operations.raise_(self.go_on[name])

    def _taken(self, name: str, fails: bool) -> Operation[None]:
        try:
            answer = yield from self.turn.of(self._work(name, fails))
        except Stopped:
            self.steps.append(f"{name} has failed")
        else:
            self.steps.append(f"{answer} is back")

    def _work(self, name: str, fails: bool) -> Operation[str]:
        self.steps.append(f"{name} begins")
        yield self.go_on[name]
        if fails:
            raise Stopped
        return name


@pytest.mark.parametrize("fails", [False, True])
def test_given_several_then_each_begins_when_the_one_before_has_ended(host: ActorContext, fails: bool) -> None:
    work = Work(host)
    work.start("one", fails=fails)
    work.start("two")
    work.start("three")
    assert work.steps == ["one begins"]
    work.end("one")
    ended = "one has failed" if fails else "one is back"
    assert set(work.steps) == {"one begins", ended, "two begins"}
    work.end("two")
    work.end("three")
    assert work.steps[-3:] == ["two is back", "three begins", "three is back"]


def test_given_a_turn_that_was_given_back_before_anybody_waited_then_the_next_begins_at_once(
    host: ActorContext,
) -> None:
    work = Work(host)
    work.start("one")
    work.end("one")
    work.start("two")
    assert work.steps == ["one begins", "one is back", "two begins"]


def test_given_the_end_of_all_then_nobody_who_waited_begins(host: ActorContext) -> None:
    """What was fenced must not go on."""
    work = Work(host)
    work.start("one")
    work.start("two")
    host.new_life()
    assert work.steps == ["one begins"]
