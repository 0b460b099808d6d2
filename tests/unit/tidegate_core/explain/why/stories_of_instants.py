"""Instants of time triggers that nothing was made of, or not yet."""

from __future__ import annotations

from typing import Any

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_recurring, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.shard_bench import a_bench
from tests.unit.tidegate_core.explain.why.stories import story
from tests.unit.tidegate_core.explain.why.stories_of_schedules import applied, control
from tests.unit.tidegate_core.explain.why.telling import served, why
from tidegate_core.explain.why.reason import Explanation
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.effects import Commit

ROME: Doc = {"type": "cron", "expression": "30 2 * * *", "zone": "Europe/Rome"}


def applied_at(instant: str, trigger: Doc, **more: Any) -> ActorHarness:
    """A schedule that is applied then."""
    bench = ActorHarness()
    bench.now = parse_instant(instant)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, **more)))
    bench.run(SECOND)
    return bench


@story(
    "not_due",
    "not_due [2025-11-13T03:00:00Z]: due at 2025-11-13T03:00:00Z",
)
def _it_is_still_to_come() -> Explanation:
    return why(served(applied()), "2025-11-13T03:00:00Z")


@story(
    "being_made",
    "being_made: due since 2025-11-13T03:00:00Z, and its job is made now",
)
def _it_is_due_and_its_transaction_is_on_its_way() -> Explanation:
    bench = applied()
    bench.hold_back(lambda effect: isinstance(effect, Commit) and "fire" in effect.transaction.name)
    bench.run(HOUR)
    return why(served(bench), "2025-11-13T03:00:00Z")


@story(
    "not_named",
    (
        "not_named: the trigger names no such instant; previous: Fri 2025-11-14 02:30:00+01:00; next: "
        "Sat 2025-11-15 02:30:00+01:00"
    ),
)
def _the_trigger_names_other_instants() -> Explanation:
    return why(served(applied(ROME)), "2025-11-14T02:31")


@story(
    "excluded",
    "excluded: exclude leaves out 2025-11-14T23:00:00Z to 2025-11-15T23:00:00Z",
)
def _the_day_is_left_out() -> Explanation:
    exclude = [{"type": "dates", "first": "2025-11-15"}]
    return why(served(applied({**ROME, "exclude": exclude})), "2025-11-15T02:30")


@story(
    "before_start",
    "before_start: the trigger starts at 2025-12-01T00:00:00Z",
)
def _the_trigger_starts_later() -> Explanation:
    return why(served(applied({**ROME, "start": "2025-12-01T00:00:00Z"})), "2025-11-15T02:30")


@story(
    "after_end",
    "after_end: the trigger ended at 2025-12-01T00:00:00Z",
)
def _the_trigger_ends_before() -> Explanation:
    return why(served(applied({**ROME, "end": "2025-12-01T00:00:00Z"})), "2025-12-15T02:30")


@story(
    "dst_gap",
    "dst_gap: local time 2026-03-29 02:30:00 does not exist in Europe/Rome, and dst_gap is skip",
)
def _the_clock_leaves_half_past_two_out() -> Explanation:
    bench = applied_at("2026-03-29T00:00:00Z", {**ROME, "dst_gap": "skip"})
    bench.run(2 * HOUR)
    return why(served(bench), "2026-03-29T02:30")


@story(
    "dst_shift",
    (
        "dst_shift: local time 2026-03-29 02:30:00 does not exist in Europe/Rome; it fires at the first "
        "instant after the gap, 2026-03-29T01:00:00Z"
    ),
    ("launched: launched as run 0000-tksv3k6jfd5wfeowedxuwvpuye, which ended as succeeded at 2026-03-29T01:00:00.350Z"),
)
def _the_clock_leaves_it_out_and_it_fires_after_the_gap() -> Explanation:
    bench = applied_at("2026-03-29T00:00:00Z", ROME)
    bench.run(2 * HOUR)
    return why(served(bench), "2026-03-29T02:30")


@story(
    "dst_overlap",
    ("launched: launched as run 0000-wjfxlkjqkoegsozovz45j6vttu, which ended as succeeded at 2026-10-25T00:30:00.350Z"),
    ("dst_overlap: the clock shows this time twice; it fires at 2026-10-25T00:30:00Z (dst_overlap first)"),
)
def _the_clock_shows_it_twice() -> Explanation:
    bench = applied_at("2026-10-25T00:00:00Z", ROME)
    bench.run(2 * HOUR)
    return why(served(bench), "2026-10-25T02:30")


@story(
    "zone_jump",
    (
        "zone_jump: local time 2011-12-30 02:30:00 does not exist in Pacific/Apia: the zone was "
        "redefined at 2011-12-30T10:00:00Z"
    ),
)
def _samoa_had_no_30_december() -> Explanation:
    bench = applied_at("2011-12-30T09:00:00Z", {**ROME, "zone": "Pacific/Apia"})
    bench.run(2 * HOUR)
    return why(served(bench), "2011-12-30T02:30")


@story(
    "max_fires_reached",
    ("max_fires_reached: 2 occurrences have been, the last one of 2025-11-13T04:00:00Z; an update counts anew"),
)
def _two_have_been() -> Explanation:
    bench = applied(every("1h", max_fires=2))
    bench.run(4 * HOUR)
    return why(served(bench), "2025-11-13T05:00:00Z")


@story(
    "not_found_yet",
    (
        "not_found_yet [2026-06-02T00:00:00Z]: it leaves out so much that no instant was found before "
        "2026-06-02T00:00:00Z; then it is searched on"
    ),
)
def _years_are_left_out_hour_by_hour() -> Explanation:
    left_out = {"type": "cron", "dialect": "quartz"}
    exclude = [{**left_out, "expression": f"* * {hour} * * ? 2025-2028"} for hour in range(24)]
    return why(served(applied(every("1m", exclude=exclude))))


@story(
    "no_more_instants",
    "no_more_instants: its trigger names no further instant; why --at 2025-11-13T02:20:00Z says what became of it",
)
def _it_was_to_fire_once() -> Explanation:
    bench = applied({"type": "at", "instant": "2025-11-13T02:20:00Z"})
    bench.run(HOUR)
    return why(served(bench))


@story(
    "counts_from_later",
    (
        "counts_from_later: an update or a resume had it count from 2025-11-13T02:39:22Z on, and nothing "
        "was made of this instant before"
    ),
)
def _more_suspensions_than_are_kept() -> Explanation:
    bench = applied(every("1m"))
    for number in range(9):
        bench.request(a_request("suspend", request_id=f"s-{number}"))
        bench.run(2 * MINUTE)
        bench.request(a_request("resume", request_id=f"r-{number}"))
        bench.run(MINUTE)
    return why(served(bench), "2025-11-13T02:14:00Z")


@story(
    "message_due",
    "message_due: a recurring message was due; nothing is written when it is sent",
)
def _nothing_is_written_of_a_message() -> Explanation:
    bench = a_bench()
    bench.request(an_apply(a_recurring("nightly", every("1h"))))
    bench.run(HOUR)
    return why(served(bench), "2025-11-13T03:00:00Z")


@story(
    "forgotten",
    "forgotten: entries of the ledger are kept 90 days",
)
def _it_was_half_a_year_ago() -> Explanation:
    bench = applied()
    bench.run(HOUR)
    bench.request(a_request("suspend"))
    bench.months(6)
    return why(served(bench), "2025-11-13T03:00:00Z")


@story(
    "not_known",
    "not_known: it was due, and no stored row says how it ended",
)
def _more_suspensions_of_the_namespace_than_are_kept() -> Explanation:
    bench = applied(every("1m"))
    for number in range(9):
        control(bench, "suspend", number, scope="namespace", namespace="flights")
        bench.run(MINUTE)
        control(bench, "resume", number, scope="namespace", namespace="flights")
    return why(served(bench), "2025-11-13T02:14:00Z")
