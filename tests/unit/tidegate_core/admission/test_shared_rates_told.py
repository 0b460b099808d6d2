"""What a job before a shared rate is told, and the size of the rate's item, whoever counts (issue 5)."""

from __future__ import annotations

import json

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.crowds import FILE, USED_WITHIN_MS, apart, schedule_of
from tests.support.harness.rates_bench import a_bench, admitted, begun, rate, schedules, the_rate, trigger
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.shared_limit import EXPIRED_MAX, GONE_MAX, SharedLimit
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.rate_counters import Counted, count_admission


def unmet(bench: ActorHarness) -> list[Doc]:
    jobs = [from_item(Job, row) for row in bench.rows("J#")]
    return [json.loads(job.unmet) for job in jobs if job.unmet]


def test_given_a_job_before_a_rate_then_it_is_told_what_counts_and_when_there_is_room() -> None:
    bench = a_bench()
    first, second = apart(2)
    schedules(bench, [first, second], rate(1, per="1h"))
    trigger(bench, first, second)
    (told,) = unmet(bench)
    (verdict,) = told["verdicts"]
    free_at = admitted(bench)[0] + HOUR
    assert (verdict["code"], verdict["until"]) == ("rate_reached", free_at)
    assert {key: verdict["values"][key] for key in ("scope", "name", "max", "per", "admitted", "window")} == {
        "scope": "group",
        "name": "crowd",
        "max": 1,
        "per": HOUR,
        "admitted": 1,
        "window": "sliding",
    }
    assert verdict["values"]["frees_at"] in verdict["reason"]


def test_given_a_large_rate_then_its_item_stays_small() -> None:
    """Above 50 the instants are counted by slices of the span."""
    bench = a_bench(shards=4)
    schedules(bench, ["a"], rate(300, per="10m"), overlap="allow")
    for _ in range(30):
        for number in range(10):
            bench.request(a_request("trigger", "a", request_id=f"t-{bench.now}-{number}"))
        bench.run(10 * SECOND)
    state = the_rate(bench)
    assert (state.in_use, sum(state.counts.values())) == (300, 300)
    assert len(state.counts) <= 101
    bench.request(a_request("trigger", "a", request_id="one more"))
    bench.run(SECOND)
    assert len(admitted(bench)) == 300
    bench.run(5 * MINUTE + 15 * SECOND)
    assert len(admitted(bench)) == 301


def test_given_a_rate_whose_admissions_are_all_forced_then_its_item_stays_small_and_others_pass_once_there_is_room() -> (
    None
):
    """From a review: nobody took out what had expired, until no write could name it all, and the rate stood still for ever."""
    bench = a_bench()
    forced = {"pending_timeout": "1s", "pending_timeout_action": "force", "overlap": "allow"}
    spec = a_spec("a", every("10s"), file=FILE, constraints=[rate(1)], **forced)
    bench.request(an_apply(spec, "apply-a"))
    for _ in range(30):
        bench.run(MINUTE)
        assert len(the_rate(bench).counts) <= 8 + EXPIRED_MAX
    bench.request(a_request("suspend", "a", mode="drop"))
    schedules(bench, ["b"], rate(1))
    bench.run(2 * MINUTE)
    trigger(bench, "b")
    bench.run(USED_WITHIN_MS)
    assert schedule_of(bench.started[-1]) == "b"
    assert bench.notices("decision_failed") == []


def test_given_more_expired_counts_than_a_write_takes_out_then_the_home_sees_to_it_for_who_waits() -> None:
    bench = a_bench()
    schedules(bench, ["a"], rate(1), overlap="allow")
    key = keys.shared_rate("flights", "group", "crowd", MINUTE, None)
    for number in range(3 * GONE_MAX):
        counted = Counted(key, bench.now - number)
        forced = count_admission(counted, f"old-{number}", 1, SharedLimit(), bench.now, forced=True)
        bench.store.transact(Transaction("admit", (forced,), f"old-{number}", None))
    trigger(bench, "a")
    bench.run(5 * SECOND)
    assert len(begun(bench)) == 1
    assert the_rate(bench).in_use == 1
    assert bench.notices("decision_failed") == []
