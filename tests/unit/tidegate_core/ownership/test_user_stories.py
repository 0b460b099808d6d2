"""CDAP's user stories US-02 to US-06 as their rows state them: fail-over, data, programs, rare feeds, priorities.

US-01's ten thousand schedules are in `test_ten_thousand_crons.py`; US-05's evenness over a month is in `test_flexible.py`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, at_most, on_data, on_run_of
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.story_bench import QuietStory, Story, schedule_of
from tidegate_core.rows.effects import Effect, NotSubmitted, Submit

EACH_MINUTE: Doc = {"type": "cron", "expression": "* * * * *"}


@pytest.mark.parametrize(
    ("mode", "of_the_outage"),
    [
        ("all", {"launched": 5}),
        ("last", {"launched": 5}),  # The last one's run accounts for all: its ledger row covers them.
        ("coalesce", {"launched": 5}),
        ("none", {"skipped/outage": 5}),
    ],
)
def test_us_02_given_the_owner_killed_across_fires_and_then_nobody_for_five_minutes_then_every_fire_is_accounted_for(
    mode: str, of_the_outage: dict[str, int]
) -> None:
    """US-02: fail-over skips nothing. Of each of 20 schedules each minute has run once, or the ledger says by which policy it
    did not: the owner is killed across five fire times, at another effect each time, then all nodes are away for 5 minutes.
    """
    story = Story()
    names = [f"load-{number}" for number in range(tier.at_night(20, else_=10))]
    for name in names:
        story.apply(name, EACH_MINUTE, catchup={"mode": mode})
    begin = first = story.now // MINUTE * MINUTE + MINUTE
    for kill in range(5):
        story.run(begin - 1 - story.now)
        story.crash_after = story.effects_outside + 3 + 7 * kill
        story.run(2 * SECOND)
        assert story.lives == kill + 2
        begin += MINUTE
    story.run(begin - SECOND - story.now)
    story.away(5 * MINUTE)
    story.run(10 * MINUTE)
    began = Counter((schedule_of(order), str(order.context["nominal"])) for order in story.started)
    assert set(began.values()) == {1}
    last = story.now // MINUTE * MINUTE - MINUTE
    accounts: dict[tuple[str, int], list[str]] = {}
    for row in story.rows("L#"):
        since, until = int(row.get("covered_from") or row["nominal"]), int(row.get("covered_to") or row["nominal"])  # type: ignore[arg-type]
        for instant in range(since, until + 1, MINUTE):
            accounts.setdefault((str(row["name"]), instant), []).append(
                "/".join(filter(None, (str(row["disposition"]), str(row["reason"]))))
            )
    for name in names:
        told = {instant: accounts[name, instant] for instant in range(first, last + 1, MINUTE)}
        assert all(len(each) == 1 for each in told.values())
        missed = [instant for instant in told if begin <= instant < begin + 5 * MINUTE]
        assert Counter(told[instant][0] for instant in missed) == of_the_outage
        assert {told[instant][0] for instant in told.keys() - set(missed)} == {"launched"}


def test_us_03_given_data_once_a_day_at_an_unknown_time_then_it_starts_at_once_and_a_late_start_is_told() -> None:
    """US-03: an SLA of 3 h from the data: start within 5 s; an alert when something is in the way for longer."""
    told = {"pending_timeout": "3h", "pending_timeout_action": "alert"}
    one = at_most(1, "group", group="cluster")
    story = QuietStory(Behaviour(runs_for=4 * HOUR))
    story.apply("daily", on_data("daily"), one, **told)
    story.run(5 * HOUR)
    story.data("2025-11-13", dataset="daily")
    story.run(5 * SECOND)
    assert len(story.began("daily")) == 1
    assert story.notices("job_waits_too_long") == []
    story.apply("other", on_data("other"), one, **told)
    story.data("x", dataset="other")
    story.run(2 * HOUR)
    assert story.notices("job_waits_too_long") == []
    story.run(2 * HOUR + MINUTE)
    assert len(story.notices("job_waits_too_long")) == 1
    assert len(story.began("other")) == 1


def test_us_04_given_a_program_after_another_then_it_runs_after_its_success_only_and_knows_which_run_it_was() -> None:
    """US-04: B after A succeeded, never after A failed; A that failed, is tried again and succeeds, once."""
    story = Story()
    outcome = iter(("succeeded", "failed", "failed", "succeeded"))
    story.behaves = lambda order: (
        Behaviour(outcome=next(outcome), error_class="transient") if schedule_of(order) == "a" else Behaviour()
    )
    story.apply("a", {"type": "every", "period": "10h"})
    story.apply("b", on_run_of("a"), args=["${upstream.run_id}"])
    runs: list[int] = []
    for number in range(2):
        story.request(a_request("trigger", "a", f"t{number}"))
        story.run(MINUTE)
        runs.append(len(story.began("b")))
    assert runs == [1, 1], "not after the failure"
    story.apply("a", {"type": "every", "period": "10h"}, retry={"tries": 1, "backoff": "1s"})
    story.request(a_request("trigger", "a", "t2"))
    story.run(MINUTE)
    assert len(story.began("b")) == 2
    last = [order for order in story.started if schedule_of(order) == "b"][-1]
    upstream = [order for order in story.started if schedule_of(order) == "a"][-1]
    assert upstream.attempt == 2
    assert last.args == (upstream.run_id,)


def test_us_05_given_rare_feeds_at_any_time_of_the_night_then_each_runs_once_and_they_are_spread() -> None:
    """US-05: 5,000 schedules, once a day between midnight and six: each quarter of an hour has its share within 30 %, and
    no minute is a herd. A minute has 14 of them on average; so few fall together by chance (`test_flexible.py`
    has the 30 % for each minute, over the nights of a month).

    `make test` has 200 schedules. Chance spreads fewer of them less evenly: the bound is as many standard deviations away.
    """
    feeds = tier.at_night(5_000, else_=200)
    story = QuietStory()
    story.until("23:30")
    trigger = {"type": "cron", "expression": "0 0 * * *", "flexible": "6h"}
    for number in range(feeds):
        story.request(an_apply(a_spec(f"feed-{number}", trigger)))
    story.until("00:00", day=1)
    assert story.started == []
    story.until("06:01", day=1)
    assert len({schedule_of(order) for order in story.started}) == len(story.started) == feeds
    begun = [story.since_noon(at) - 12 for at in story.began()]
    assert min(begun) >= 0
    assert max(begun) < 6 + 1 / 60
    quarters = Counter(min(23, int(4 * hours)) for hours in begun)
    mean, share = feeds / 24, 0.3 * (5_000 / feeds) ** 0.5
    assert len(quarters) == 24
    assert all(abs(found - mean) < share * mean for found in quarters.values())
    in_a_minute = feeds / (6 * 60)
    assert max(Counter(int(60 * hours) for hours in begun).values()) <= in_a_minute + 5 * in_a_minute**0.5


def test_us_06_given_priorities_under_load_then_high_ones_go_first_low_ones_all_run_and_waiting_raises_a_class() -> (
    None
):
    """US-06: at most 10 at a time, 100 low and 10 high ones ready: high first, all in the end, half an hour is worth a class.

    `make test` has 20 low ones.
    """
    high, low = 10, tier.at_night(100, else_=20)
    ten = at_most(10, "group", group="cluster")
    story = Story(Behaviour(starts_after=10, runs_for=20 * SECOND), shards=16)
    for number in range(10):
        story.apply(f"before-{number}", {"type": "every", "period": "10h"}, ten)
        story.request(a_request("trigger", f"before-{number}"))
    names = [f"{'low' if number % (1 + low // high) else 'high'}-{number}" for number in range(high + low)]
    for name in names:
        story.apply(name, {"type": "every", "period": "10h"}, ten, priority=name.split("-")[0])
    for name in names:
        story.request(a_request("trigger", name))
    assert len(story.started) == 10
    story.run(10 * MINUTE)
    began = [schedule_of(order).split("-")[0] for order in story.started]
    assert began[:10] == ["before"] * 10
    assert began[10 : 10 + high] == ["high"] * high
    assert began[10 + high :] == ["low"] * low


def test_us_06_given_a_low_job_that_waits_long_enough_then_a_medium_one_does_not_overtake_it() -> None:
    """US-06: ageing turns low to medium after 30 minutes."""
    one = at_most(1, "group", group="cluster")
    story = QuietStory(Behaviour(starts_after=10, runs_for=2 * HOUR))
    never = {"type": "every", "period": "100h"}
    for name, priority in (("first", "high"), ("old", "low"), ("young", "medium")):
        story.apply(name, never, one, priority=priority)
    for name, wait in (("first", SECOND), ("old", 31 * MINUTE), ("young", 5 * HOUR)):
        story.request(a_request("trigger", name))
        story.run(wait)
    assert [schedule_of(order) for order in story.started] == ["first", "old", "young"]


def test_us_03_given_a_launcher_that_is_away_then_the_run_starts_when_it_is_back() -> None:
    """US-03 with CD-042: nothing is lost meanwhile."""
    story = Story()
    story.apply("daily", on_data())

    def a_submit(effect: Effect) -> bool:
        return isinstance(effect, Submit)

    story.answer_with(a_submit, NotSubmitted("nobody answers"), times=10_000)
    story.data("2025-11-13")
    story.run(30 * MINUTE)
    assert story.started == []
    story.as_usual()
    story.run(MINUTE)
    assert len(story.started) == 1
