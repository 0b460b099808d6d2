"""Rows of CDAP's schedule model and its intake as they state them, where no other test has them (see `tests/unit/repo/cdap_rows.txt`)."""

from __future__ import annotations

from typing import Any

from tests.support import tier
from tests.support.builders import (
    EVENTS,
    MINUTE,
    RECEIPTS,
    REQUESTS,
    RUNS,
    SECOND,
    Doc,
    a_request,
    a_spec,
    an_apply,
    an_event,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.story_bench import Story, brought, schedule_of
from tidegate_core.language.values.instants import format_instant
from tidegate_spark.run_context import read_context

EACH_MINUTE: Doc = {"type": "cron", "expression": "* * * * *"}


def row(story: Story, name: str) -> dict[str, Any]:
    (found,) = story.rows(f"S#flights/{name}")
    return dict(found)


def statuses(story: Story) -> list[str]:
    return sorted(str(each["name"]) for each in story.rows("S#flights/") if each["status"] == "active")


def test_given_updates_suspends_and_resumes_then_the_id_stays_and_each_change_is_a_later_one() -> None:
    """CD-002, CD-003: names are the identity, an update keeps the status, and each change is newer than the one before it."""
    story = Story()
    changes = []
    for number in range(3):
        story.apply("daily", on_data(count=number + 1))
        changes.append((str(row(story, "daily")["position"]), row(story, "daily")["status"]))
        story.request(a_request("suspend", "daily", f"s{number}"))
        changes.append((str(row(story, "daily")["position"]), row(story, "daily")["status"]))
        story.request(a_request("resume", "daily", f"r{number}"))
        story.run(SECOND)
    assert [status for _, status in changes] == ["active", "suspended"] * 3
    positions = [position for position, _ in changes]
    assert positions == sorted(set(positions))


def test_given_a_flood_of_events_then_what_is_due_by_time_starts_within_two_seconds() -> None:
    """CD-051."""
    story = Story()
    story.store_answers_after = 2
    story.apply("timed", EACH_MINUTE)
    story.apply("fed", on_data(count=5_000))
    due = (story.now // MINUTE + 1) * MINUTE
    story.run(due - 500 - story.now)
    story.append(
        "tidegate.events", 0, *(an_event(f"d-{number}") for number in range(tier.at_night(5_000, else_=1_000)))
    )
    story.run(5 * SECOND)
    assert [at - due < 2 * SECOND for at in story.began("timed")] == [True]


def test_given_a_late_occurrence_then_the_program_sees_the_planned_instant() -> None:
    """CD-055."""
    story = Story()
    story.apply("timed", EACH_MINUTE, args=["${nominal}"])
    due = (story.now // MINUTE + 1) * MINUTE
    story.run(due - 1 - story.now)
    story.away(30 * SECOND)
    story.run(SECOND)
    assert [order.args for order in story.started] == [(format_instant(due),)]
    assert story.began()[0] > due + 20 * SECOND


def test_given_a_schedule_that_begins_suspended_then_nothing_fires_before_its_resume_and_nothing_of_before_after_it() -> (
    None
):
    """CD-062, CD-063: a suspended span is never a miss."""
    story = Story()
    story.apply("timed", EACH_MINUTE, suspended=True)
    story.run(10 * MINUTE)
    assert story.started == []
    story.request(a_request("resume", "timed"))
    story.run(SECOND)
    assert story.started == []
    story.run(MINUTE)
    assert len(story.started) == 1


def test_given_what_an_upstream_run_reported_then_the_run_that_waits_for_it_has_it_at_once() -> None:
    """CD-087, CD-105, CD-171: the event carries the outputs itself, so nothing overtakes what it refers to."""
    story = Story(Behaviour(outputs={"date": "2025-11-13"}))
    story.apply("a", {"type": "every", "period": "10h"}, args=["--date", "x"])
    story.apply("b", on_run_of("a"), args=["${upstream.outputs.date}", "${upstream.args[1]}"])
    story.request(a_request("trigger", "a"))
    story.run(SECOND)
    assert [order.args for order in story.started][1:] == [("2025-11-13", "x")]


def test_given_files_that_are_applied_or_not_then_what_is_applied_is_there_and_nothing_else_changes() -> None:
    """CD-160, CD-161, CD-162, CD-164: who does not want an application's schedules touched does not apply them."""
    story = Story()
    assert statuses(story) == []
    for _ in range(2):
        story.apply("one", on_data("one"))
        story.apply("two", on_data("two"))
        assert statuses(story) == ["one", "two"]
    story.request(a_request("delete", "one"))
    story.request(a_request("delete", "two"))
    assert statuses(story) == []
    story.apply("two", on_data("two"))
    assert statuses(story) == ["two"]


def test_given_schedules_of_many_namespaces_then_the_topics_are_the_same_few() -> None:
    """CD-050."""
    story = Story()
    for number in range(5):
        story.request(an_apply({**a_spec("timed", EACH_MINUTE), "namespace": f"n{number}"}, f"a{number}"))
    story.run(2 * MINUTE)
    assert len(story.started) == 10
    assert {sent.topic for sent in story.sent} == {RECEIPTS, RUNS}
    assert {topic for topic, _ in story.logs} <= {REQUESTS, EVENTS}


def test_given_each_kind_of_trigger_then_the_program_is_told_what_fired_it() -> None:
    """CD-104: the planned instant, the data partitions that came, or the upstream run with its arguments."""
    story = Story()
    story.apply("timed", EACH_MINUTE, args=["x"])
    story.apply("fed", on_data())
    story.apply("after", on_run_of("timed"))
    story.run(MINUTE)
    story.data("d1", apart=SECOND)
    told = {schedule_of(order): (order.run_id, read_context(order.context)) for order in story.started}
    assert told["timed"][1].nominal is not None
    assert brought(story, [*told].index("fed")) == ["d1"]
    upstream = told["after"][1].upstream
    assert upstream is not None
    assert (upstream.run_id, upstream.status, upstream.args) == (told["timed"][0], "succeeded", ("x",))
