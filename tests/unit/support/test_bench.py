"""What a bench does with time, and what two benches share."""

from __future__ import annotations

from tests.support.builders import SECOND, a_send
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.rows.effects import Commit, Effect
from tidegate_memory.store import MemoryStore


def a_cursor(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "cursor"


def begun() -> ActorHarness:
    bench = ActorHarness()
    bench.store = MemoryStore(remembers_tokens=False)
    bench.run(SECOND)
    return bench


def next_of(bench: ActorHarness) -> object:
    return max(int(str(row["next"])) for row in bench.rows("TP"))


def test_given_a_delayed_effect_then_its_author_asks_again_and_it_arrives_at_the_release() -> None:
    bench = begun()
    bench.delay(a_cursor)
    bench.request(a_send("m-1", after="5s"))
    assert next_of(bench) == 0
    bench.run(SECOND)
    assert next_of(bench) == 1
    assert len(bench.commits("cursor")) == 2
    assert bench.holds_something
    bench.release()
    assert next_of(bench) == 1, "it was refused"


def test_given_a_crash_at_an_effect_then_that_is_done_and_another_actor_goes_on() -> None:
    bench = begun()
    bench.crash_at(a_cursor)
    bench.request(a_send("m-1", after="5s"))
    assert (bench.lives, next_of(bench)) == (2, 1)
    bench.run(10 * SECOND)
    assert [each.document["of"] for each in bench.on("out")] == ["m-1"]
