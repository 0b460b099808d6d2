"""Where a schedule stands, and what its trigger waits for."""

from __future__ import annotations

from typing import Any

from tests.support.builders import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.shard_bench import CLOSED, a_bench
from tests.unit.tidegate_core.explain.why.stories import story
from tests.unit.tidegate_core.explain.why.telling import served, why, why_job
from tidegate_core.explain.why.reason import Explanation
from tidegate_core.rows.effects import Commit


def applied(trigger: Doc | None = None, **more: Any) -> ActorHarness:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=trigger or every("1h"), **more)))
    bench.run(SECOND)
    return bench


def control(bench: ActorHarness, kind: str, number: int = 1, **scope: str) -> None:
    told = {"actor": "ana", "reason": "maintenance"}
    bench.request({"id": f"{kind}-{number}", "type": f"control.{kind}", **scope, **told})
    bench.run(MINUTE)


@story(
    "suspended",
    (
        "suspended [2025-11-13T06:00:00Z]: suspended since 2025-11-13T02:13:22Z (mode hold), until "
        "2025-11-13T06:00:00Z, by ana: maintenance"
    ),
)
def _somebody_has_suspended_it() -> Explanation:
    bench = applied()
    bench.request(a_request("suspend", mode="hold", actor="ana", reason="maintenance", until="2025-11-13T06:00:00Z"))
    bench.run(HOUR)
    return why_job(served(bench))


@story(
    "namespace_suspended",
    ("namespace_suspended: namespace flights is suspended since 2025-11-13T02:13:22Z, by ana: maintenance"),
    "not_due [2025-11-13T03:00:00Z]: its next instant is 2025-11-13T03:00:00Z",
)
def _its_namespace_is_suspended() -> Explanation:
    bench = applied()
    control(bench, "suspend", scope="namespace", namespace="flights")
    return why(served(bench))


@story(
    "system_suspended",
    "system_suspended: everything is suspended since 2025-11-13T02:13:22Z, by ana: maintenance",
    "no_events: no event is counted that waits for more (it counts from 2025-11-13T02:13:21Z)",
)
def _everything_is_suspended() -> Explanation:
    bench = applied(on_data())
    control(bench, "suspend", scope="system")
    return why(served(bench))


@story(
    "resuming",
    "resuming: resumed with backlog none: what is not wanted of it is being ended",
    "window_closed [2025-11-14T03:00:00Z]: the window 03:00-04:00 UTC opens at 2025-11-14T03:00:00Z",
    (
        "behind: 1 of the schedule's jobs are before it; the first is 0000-bgrcootznnti7fxklteyhwiate, "
        "which waits itself"
    ),
    "window_closed [2025-11-14T03:00:00Z]: the window 03:00-04:00 UTC opens at 2025-11-14T03:00:00Z",
    (
        "behind: 2 of the schedule's jobs are before it; the first is 0000-bgrcootznnti7fxklteyhwiate, "
        "which waits itself"
    ),
    "window_closed [2025-11-14T03:00:00Z]: the window 03:00-04:00 UTC opens at 2025-11-14T03:00:00Z",
    "not_due [2025-11-13T06:00:00Z]: its next instant is 2025-11-13T06:00:00Z",
)
def _the_backlog_is_being_ended() -> Explanation:
    bench = applied(constraints=[CLOSED])
    bench.request(a_request("suspend", mode="hold"))
    bench.run(3 * HOUR)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and "release" in effect.transaction.name)
    bench.request(a_request("resume", backlog="none"))
    return why(served(bench))


@story(
    "deleted",
    "deleted: deleted at 2025-11-13T02:13:22Z, by ana: no longer needed",
)
def _it_was_deleted() -> Explanation:
    bench = applied()
    bench.request(a_request("delete", actor="ana", reason="no longer needed"))
    bench.run(SECOND)
    return why(served(bench), NOW + 24 * HOUR - NOW % HOUR)


@story(
    "not_there_yet",
    "not_there_yet: made at 2025-11-13T02:13:21Z",
)
def _it_was_made_later() -> Explanation:
    return why(served(applied()), "2025-11-13T02:00:00Z")


@story(
    "not_served",
    "not_served: no node has served shard 0 since 2025-11-13T02:13:22Z",
)
def _no_node_is_there() -> Explanation:
    bench = served(applied())
    bench.now += 2 * HOUR
    return why(bench, "2025-11-13T03:00:00Z")


# -- events ---------------------------------------------------------------------------------------------------------------


@story(
    "no_events",
    (
        "no_events [2025-11-13T06:13:21Z]: no event is counted that waits for more (it counts from "
        "2025-11-13T02:13:21Z); at_least_every asks for a job at 2025-11-13T06:13:21Z"
    ),
)
def _nothing_has_come() -> Explanation:
    return why(served(applied({**on_data(), "at_least_every": "4h"})))


@story(
    "waiting_for_events",
    (
        "waiting_for_events [2025-11-13T08:13:22Z]: since 2025-11-13T02:13:22Z some of it has come for "
        "2013-01-01; missing: 1 of 1 data partitions of weather.raw"
    ),
)
def _one_of_two_has_come() -> Explanation:
    bench = applied(all_of(on_data("flights.raw"), on_data("weather.raw"), correlate="data_partition", timeout="6h"))
    bench.event(an_event("2013-01-01", "flights.raw"))
    bench.run(SECOND)
    return why(served(bench))


@story(
    "not_satisfied",
    ("not_satisfied: its trigger counts events and was not satisfied then; next occurrence: 2025-11-13T03:13:22Z"),
)
def _nothing_had_come_then() -> Explanation:
    bench = applied(on_data())
    bench.run(HOUR)
    bench.event(an_event("a"))
    bench.run(HOUR)
    return why(served(bench), "2025-11-13T02:30")
