"""A node that is told to end waits for programs that would go with it, and then has them end."""

from __future__ import annotations

import pytest

from tests.unit.tidegate_node.conftest import ManualClock, Notes
from tidegate_node.effects import program_shutdown
from tidegate_node.effects.program_shutdown import ProgramsEnd

WAIT_S, GRACE_S = 480.0, 60.0


class FakePrograms:
    """So many, of which one ends with each look, or with those that follow the order to end."""

    def __init__(self, clock: ManualClock, count: int, *, ends: str = "by themselves") -> None:
        self._clock = clock
        self._count = count
        self._ends = ends
        self.asked_at: list[int] = []
        self.begun = clock.monotonic

    def under_way(self) -> int:
        self._clock.pass_ms(1_000)
        count = self._count
        if self._ends == "by themselves" or (self._ends == "when asked" and self.asked_at):
            self._count = max(0, count - 1)
        return count

    def ask_to_end(self) -> None:
        self.asked_at.append(self._clock.monotonic - self.begun)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_shutdown, "LOOK_EVERY_S", 0.0001)


async def waited(
    count: int, *, ends: str = "by themselves", wait_s: float = WAIT_S, status: int = 0
) -> tuple[FakePrograms, Notes, int]:
    clock, notes = ManualClock(), Notes()
    programs = FakePrograms(clock, count, ends=ends)
    await ProgramsEnd(programs, wait_s, GRACE_S, clock, notes).wait(status)
    return programs, notes, clock.monotonic - programs.begun


async def test_given_a_host_that_outlives_its_node_then_programs_are_left_alone() -> None:
    _, notes, took = await waited(3, wait_s=0)
    assert (notes.said, took) == ([], 0)


async def test_given_no_programs_then_the_node_ends_at_once() -> None:
    _, notes, took = await waited(0)
    assert (notes.said, took) == ([], 1_000)


async def test_given_programs_that_end_in_time_then_nobody_is_asked_to() -> None:
    programs, notes, _ = await waited(3)
    assert programs.asked_at == []
    assert notes.said == [("programs_awaited", {"programs": 3, "wait_s": WAIT_S})]


async def test_given_programs_that_go_on_then_they_are_asked_to_end_once_the_wait_is_over() -> None:
    programs, notes, took = await waited(2, ends="when asked")
    assert WAIT_S * 1_000 <= programs.asked_at[0] <= (WAIT_S + 3) * 1_000
    assert took < (WAIT_S + GRACE_S) * 1_000
    assert notes.said[1:] == [("programs_told_to_end", {"programs": 2, "grace_s": GRACE_S})]


async def test_given_a_node_that_ends_by_itself_then_they_are_asked_at_once() -> None:
    """Read: its container ends with it, and they were killed without a word. It is started again, and has shards to serve."""
    programs, notes, _ = await waited(2, ends="when asked", status=70)
    assert programs.asked_at[0] <= 3_000
    assert notes.names() == ["programs_awaited", "programs_told_to_end"]


async def test_given_programs_that_will_not_end_then_somebody_is_told_and_the_node_ends() -> None:
    _, notes, took = await waited(2, ends="never")
    assert notes.said[-1] == ("programs_left", {"programs": 2})
    assert took <= (WAIT_S + GRACE_S + 6) * 1_000


async def test_given_a_host_that_does_not_tell_then_the_node_ends_all_the_same() -> None:
    class Broken(FakePrograms):
        def under_way(self) -> int:
            raise PermissionError("no /proc")

    clock, notes = ManualClock(), Notes()
    await ProgramsEnd(Broken(clock, 1), WAIT_S, GRACE_S, clock, notes).wait(0)
    assert notes.names() == ["task_failed"]
