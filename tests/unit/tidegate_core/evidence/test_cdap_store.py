"""Rows of CDAP's schedule store as they state them: trigger rows, updates that are killed at every step, one writer for each."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.builders import (
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.story_bench import Story
from tests.support.harness.two_owners import BenchPair
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Put


def trigger_rows(bench: ActorHarness) -> Counter[str]:
    return Counter(str(row["event_key"]) for row in bench.rows("") if "event_key" in row)


def counted(bench: ActorHarness, name: str) -> list[Any]:
    return [row["counts"] for row in bench.rows(f"E#flights/{name}#")]


# -- trigger rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "event_keys"),
    [
        pytest.param(on_data("raw"), {"data/flights/raw": 1}, id="data"),
        pytest.param(on_run_of("up"), {"run/flights/up": 1}, id="run"),
        pytest.param({**on_run_of("up"), "states": ["succeeded", "failed"]}, {"run/flights/up": 1}, id="two states"),
        pytest.param(on_run_of("others/up"), {"run/others/up": 1}, id="another namespace"),
        pytest.param({"type": "event", "name": "custom.x"}, {"custom/flights/x": 1}, id="event"),
        pytest.param({"type": "cron", "expression": "@daily"}, {}, id="time has none"),
        pytest.param({"type": "every", "period": "1h"}, {}, id="nor has every"),
        pytest.param(
            all_of({**on_data("a"), "count": 2}, on_data("a"), on_data("b")),
            {"data/flights/a": 2, "data/flights/b": 1},
            id="AND of three, two of one dataset: two keys, a row for each leaf",
        ),
    ],
)
def test_given_a_trigger_then_its_rows_are_these_and_no_others(trigger: Doc, event_keys: dict[str, int]) -> None:
    """CD-010, CD-011. A row for each leaf, not for each key: two leaves of one dataset may want other numbers of it."""
    story = Story()
    story.apply("it", trigger)
    assert trigger_rows(story) == event_keys
    story.request(a_request("delete", "it"))
    story.run(SECOND)
    assert trigger_rows(story) == {}


@pytest.mark.parametrize("effects", range(1, 12))
def test_given_a_creation_that_is_killed_at_any_write_then_in_the_end_there_are_all_rows_and_the_schedule(
    effects: int,
) -> None:
    """CD-010: none or all. Rows that come before their schedule make nobody hear anything."""
    story = Story()
    story.crash_after = story.effects_outside + effects
    story.apply("it", all_of(on_data("a"), on_data("a"), on_data("b")))
    story.run(MINUTE)
    assert trigger_rows(story) == {"data/flights/a": 2, "data/flights/b": 1}
    for dataset in "ab":
        story.data("d1", dataset=dataset, apart=SECOND)
    assert len(story.started) == 1


def test_given_a_trigger_row_that_points_to_no_schedule_then_the_others_are_triggered_all_the_same() -> None:
    """CD-012: an orphan is not fatal, and nothing of it stays behind."""
    story = Story()
    story.apply("it", on_data("a"))
    (row,) = [row for row in story.rows("") if "event_key" in row]
    ghost = keys.index_row("data/flights/a", "flights", "ghost", "0" * 26, 1, 0, str(row["vector"]))
    story.store.write([Put(ghost, {**row, "pk": ghost.pk, "sk": ghost.sk, "name": "ghost"})])
    story.new_actor()
    story.run(SECOND)
    story.data("d1", apart=SECOND, dataset="a")
    assert len(story.started) == 1
    assert story.rows("E#flights/ghost") == story.rows("I#") == []
    assert story.notices("decision_failed") == []


# -- updates --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [None, "drop", "hold"])
def test_given_an_update_then_the_old_key_finds_nothing_the_new_one_does_and_the_status_stays(mode: str | None) -> None:
    """CD-013: shipped as delete, add and enable; here one change, which keeps what the schedule was."""
    story = Story()
    story.apply("it", on_data("old", count=5))
    if mode is not None:
        story.request(a_request("suspend", "it", mode=mode))
    status = "active" if mode is None else "suspended"
    story.apply("it", on_data("new", count=5))
    story.run(SECOND)
    state = story.state_of("it")
    assert state is not None
    assert (state.status, state.version) == (status, 2)
    assert set(trigger_rows(story)) == ({"data/flights/new"} if mode != "drop" else set())
    story.request(a_request("resume", "it"))
    story.data("d1", dataset="old", apart=SECOND)
    assert counted(story, "it") == []
    story.data("d1", dataset="new", apart=SECOND)
    assert counted(story, "it") == [[1]]


class Killed(Story):
    """Remembers how the schedule stood at the moment of the kill, before a successor did anything."""

    stood: tuple[str, int, bool] | None = None

    def crash(self) -> None:
        state = self.state_of("it")
        if state is not None:
            key = keys.definition(schedule_shard("flights", "it", 4), "flights", "it", state.version)
            self.stood = (state.status, state.version, key in self.store.get([key]))
        super().crash()


@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize("effects", range(1, 14))
def test_given_an_update_that_is_killed_at_any_write_then_it_stands_in_the_old_or_the_new_form(
    effects: int, suspended: bool
) -> None:
    """CD-014: the schedule is there at each moment, whole, and its status is what it was; in the end it is the new one."""
    story = Killed()
    story.apply("it", on_data("old"))
    if suspended:
        story.request(a_request("suspend", "it"))
    status = "suspended" if suspended else "active"
    story.crash_after = story.effects_outside + effects
    story.apply("it", on_data("new"))
    if story.stood is not None:  # Else it was done with fewer writes.
        assert story.stood in {(status, 1, True), (status, 2, True)}
    story.run(MINUTE)
    state = story.state_of("it")
    assert state is not None
    assert (state.status, state.version) == (status, 2)


# -- one writer -------------------------------------------------------------------------------------------------------------


def test_given_sixteen_topic_partitions_then_each_schedule_has_one_and_all_have_their_share() -> None:
    """CD-036: topic partitions spread over nodes, each shard on exactly one of them, and shards spread over them evenly."""
    shards, topic_partitions = 256, 16
    held = [[shard for shard in range(shards) if shard % topic_partitions == each] for each in range(topic_partitions)]
    assert sorted(shard for each in held for shard in each) == list(range(shards))
    names = Counter(schedule_shard("flights", f"s{number}", shards) % topic_partitions for number in range(10_000))
    assert set(names) == set(range(topic_partitions))
    assert max(names.values()) < 1.15 * 10_000 / topic_partitions


def test_given_two_that_both_think_they_hold_it_then_one_of_them_writes() -> None:
    """CD-036: a single writer for each schedule. The former holder stood still, wakes up, and hears the same events."""
    pair = BenchPair()
    pair.first.run(SECOND)
    pair.request(an_apply(a_spec("it", on_data(count=3), constraints=[at_most(1)])))
    pair.event(an_event("d1"))
    pair.take_over()
    pair.event(an_event("d2"))
    pair.run(SECOND)
    pair.thaw(pair.first)
    pair.event(an_event("d3"))
    pair.run(5 * SECOND)
    assert len(pair.started) == 1
    assert pair.first.started == []
    assert len(pair.second.ledger()) == 1
