"""The four walks of `docs/internals/walks.md` are true: each named function exists, and the core enters them in the order of the page.

Each walk runs once in the actor harness. The harness first handles an earlier schedule, event, fire or message of the same kind, so that
no start-up work counts. The recording begins with the input, or 1 ms before the due instant, and ends when the effect is carried out. It
notes each core function at its first call. A generator is entered when it is first resumed within the recording, even if it began earlier.

Modules are counted from the same recording. A second world records the same instants without the input. A module counts if the walk
enters at least one function in it that the second world does not. So modules that only idle loops enter do not count. Calls that the harness
makes in place of the node do count. The limits are the figures of a fresh process: caches of an older process may lower them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from tests.support.builders import MINUTE, SECOND, a_send, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, Effect, EffectRequest, Produce, Submit
from tidegate_core.rows.store_operations import Put

CORE = "/shared/tidegate_core/"
LINES_MAX = 30
"""Lines of one walk on the page, its heading included: a walk fits on one screen."""
WARM_UP_MS = 30 * SECOND
PATIENCE_MS = MINUTE
STEP = re.compile(r"^(\d+)\. `([a-z_/]+\.py)` `([A-Za-z_.]+)`: [A-Z].*\.$")

Call = tuple[str, str]
"""File below `tidegate_core`, and qualified name of the function."""


class Recorder:
    """Notes each function of the core at its first call, in order."""

    def __init__(self) -> None:
        self.calls: dict[Call, None] = {}

    def start(self) -> None:
        sys.setprofile(self._note)

    def stop(self) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        _, core, file = frame.f_code.co_filename.rpartition(CORE)
        name = frame.f_code.co_qualname
        if event == "call" and core and not name.startswith("<"):
            self.calls.setdefault((file, name))


class RecordedHarness(ActorHarness):
    """Stops a recording once the first effect of a kind has been carried out."""

    recorder: Recorder | None = None
    is_the_end: Callable[[Effect], bool]
    ended_at: int | None = None

    def _carry_out(self, ask: EffectRequest) -> None:
        super()._carry_out(ask)
        if self.recorder is not None and self.is_the_end(ask.effect):
            self.recorder.stop()
            self.recorder = None
            self.ended_at = self.now


@dataclass(frozen=True)
class Walk:
    """How a walk is driven.

    Attributes:
        prepare: Handles an earlier input of the same kind.
        approach: Lets time pass until the recording begins.
        prepare_quiet: Prepares the world without the input; None: as `prepare` does.
        give: Gives the input. A due instant needs none: time passes.
        is_the_end: Whether an effect is the last of the walk.
        modules_max: Limit of modules.
    """

    prepare: Callable[[RecordedHarness], None]
    give: Callable[[RecordedHarness], None]
    is_the_end: Callable[[Effect], bool]
    modules_max: int
    approach: Callable[[RecordedHarness], None] = lambda world: None
    prepare_quiet: Callable[[RecordedHarness], None] | None = None


def writes(prefix: str) -> Callable[[Effect], bool]:
    """Returns whether an effect is a transaction that puts an item whose sort key begins so."""
    return lambda effect: (
        isinstance(effect, Commit)
        and any(isinstance(action, Put) and action.key.sk.startswith(prefix) for action in effect.transaction.actions)
    )


def until_due(world: RecordedHarness) -> None:
    state = world.state_of()
    assert state is not None
    assert state.next_nominal is not None
    world.run(state.next_nominal - 1 - world.now)


def count_one_event(world: RecordedHarness) -> None:
    world.request(an_apply(a_spec(trigger=on_data(count=5))))
    world.event(an_event("p1"))


def fire_twice(world: RecordedHarness) -> None:
    world.request(an_apply(a_spec(trigger=every("1m"))))
    world.run(2 * MINUTE)


WALKS = {
    "Request to stored schedule": Walk(
        lambda world: world.request(an_apply(a_spec(trigger=every("1h")))),
        lambda world: world.request(an_apply(a_spec("weekly", trigger=every("2h")))),
        writes(keys.STATE_PREFIX),
        modules_max=72,  # Goal: 40.
    ),
    "Event to evidence": Walk(
        count_one_event,
        lambda world: world.event(an_event("p2")),
        writes(keys.EVIDENCE_PREFIX),
        modules_max=47,  # Goal: 40.
    ),
    "Due instant to submitted program": Walk(
        fire_twice,
        lambda world: world.run(1),
        lambda effect: isinstance(effect, Submit),
        modules_max=52,  # Goal: 45.
        approach=until_due,
        prepare_quiet=lambda world: world.request(an_apply(a_spec(trigger=every("1h")))),
    ),
    "Message to produce": Walk(
        lambda world: world.request(a_send("m-1")),
        lambda world: world.request(a_send("m-2")),
        lambda effect: isinstance(effect, Produce) and effect.topic == "out",
        modules_max=45,  # Goal: 30.
    ),
}


def warm_world(prepare: Callable[[RecordedHarness], None]) -> RecordedHarness:
    world = RecordedHarness(behaviour=Behaviour(runs_for=2 * SECOND))
    world.run(5 * SECOND)
    prepare(world)
    world.run(WARM_UP_MS)
    return world


@cache
def recorded(name: str) -> tuple[list[Call], frozenset[Call]]:
    """Returns the calls of a walk in order of first entry, and those of the same span of time without the input."""
    walk = WALKS[name]
    world, walked, idle = warm_world(walk.prepare), Recorder(), Recorder()
    walk.approach(world)
    began_at = world.now
    world.recorder, world.is_the_end = walked, walk.is_the_end
    walked.start()
    try:
        walk.give(world)
        if world.ended_at is None:
            world.run(PATIENCE_MS)
    finally:
        walked.stop()
    assert world.ended_at is not None, "the walk has no end"
    span = world.ended_at - began_at
    quiet = warm_world(walk.prepare_quiet or walk.prepare)
    quiet.run(began_at - quiet.now)  # The same instants: loops with alarms ring at them, too.
    asked_before = len(quiet.asked)
    idle.start()
    try:
        quiet.run(span)
    finally:
        idle.stop()
    assert not any(map(walk.is_the_end, quiet.asked[asked_before:])), "the quiet world is not quiet"
    return list(walked.calls), frozenset(idle.calls)


def sections(page: str) -> dict[str, list[str]]:
    """Returns the lines of each section, its heading excluded."""
    _, *parts = re.split(r"^## ", page, flags=re.MULTILINE)
    return {heading: body.strip().splitlines() for heading, _, body in (part.partition("\n") for part in parts)}


def functions_of(file: Path) -> set[str]:
    """Returns the qualified names of a module's functions and methods."""
    found: set[str] = set()

    def collect(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                collect(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.FunctionDef):
                found.add(f"{prefix}{child.name}")

    collect(ast.parse(file.read_text(encoding="utf-8")), "")
    return found


@pytest.fixture(scope="module")
def walks(root: Path) -> dict[str, list[str]]:
    return sections((root / "docs" / "internals" / "walks.md").read_text(encoding="utf-8"))


def steps(lines: list[str]) -> list[Call]:
    return [(match[2], match[3]) for line in lines if (match := STEP.match(line))]


def test_given_the_page_then_it_has_each_walk_in_numbered_steps_on_one_screen(walks: dict[str, list[str]]) -> None:
    assert list(walks) == list(WALKS)
    for name, lines in walks.items():
        assert 1 + len(lines) <= LINES_MAX, name
        numbers = [int(match[1]) for line in lines if (match := STEP.match(line))]
        assert numbers == list(range(1, len(numbers) + 1)), name
        assert [line for line in lines if line[:1].isdigit() and not STEP.match(line)] == []
        assert len(numbers) >= 10, name


@pytest.mark.parametrize("name", WALKS)
def test_given_a_step_then_its_function_exists(name: str, walks: dict[str, list[str]], root: Path) -> None:
    core = root / "shared" / "tidegate_core"
    missing = [
        f"{file} {function}"
        for file, function in steps(walks[name])
        if not (core / file).is_file() or function not in functions_of(core / file)
    ]
    assert missing == []


@pytest.mark.parametrize("name", WALKS)
def test_given_a_walk_then_its_functions_are_entered_in_the_order_of_the_page(
    name: str, walks: dict[str, list[str]]
) -> None:
    calls, _ = recorded(name)
    named = steps(walks[name])
    assert [step for step in named if step not in calls] == []
    assert named == sorted(named, key=calls.index)


def test_given_the_table_of_the_page_then_it_has_the_limits_of_this_test(root: Path) -> None:
    page = (root / "docs" / "internals" / "walks.md").read_text(encoding="utf-8")
    table = {
        name: int(modules)
        for name, modules in re.findall(r"^\| ([A-Z][a-z ]+) \| (\d+) \| \d+ \|$", page, re.MULTILINE)
    }
    assert table == {name: walk.modules_max for name, walk in WALKS.items()}


@pytest.mark.parametrize("name", WALKS)
def test_given_a_walk_then_it_enters_few_modules(name: str) -> None:
    """Limits are the present figures. A walk above its goal may not grow."""
    calls, idle = recorded(name)
    modules = sorted({file for file, function in calls if (file, function) not in idle})
    assert len(modules) <= WALKS[name].modules_max, modules
