"""What became of occurrences: an entry of the ledger for each way in which one ends."""

from __future__ import annotations

from typing import Any

from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import CLOSED, FOR_EVER, a_bench
from tests.unit.tidegate_core.explain.why.stories import story
from tests.unit.tidegate_core.explain.why.stories_of_instants import ROME, applied_at
from tests.unit.tidegate_core.explain.why.stories_of_jobs import QUICK
from tests.unit.tidegate_core.explain.why.telling import served, the_jobs, why
from tidegate_core.explain.why.reason import Explanation
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerRow

NEVER_STARTS = Behaviour(starts_after=None)
LOAD: Doc = {"type": "load", "on_unmet": "abort"}


def lived(
    trigger: Doc | None = None, *constraints: Doc, behaviour: Behaviour = FOR_EVER, for_ms: int = 0, **more: Any
) -> ActorHarness:
    """A schedule, and so much time."""
    bench = a_bench(behaviour)
    bench.request(an_apply(a_spec(trigger=trigger or every("1m"), constraints=list(constraints), **more)))
    bench.run(SECOND + for_ms)
    return bench


def run_twice(constraint: Doc, behaviour: Behaviour = QUICK) -> ActorHarness:
    """By hand; the second one is aborted."""
    bench = lived(every("12h"), {**constraint, "on_unmet": "abort"}, behaviour=behaviour, overlap="allow")
    for number in range(2):
        bench.request(a_request("trigger", request_id=f"t-{number}"))
        bench.run(SECOND)
    return bench


def entry(bench: ActorHarness, ends_as: str) -> Explanation:
    """Asks about the first occurrence that ended so."""
    rows = [from_item(LedgerRow, item) for item in bench.rows("L#flights/nightly#")]
    found = [row for row in rows if f"{row.disposition}/{row.reason}".rstrip("/") == ends_as]
    assert found, [f"{row.disposition}/{row.reason}" for row in rows]
    return why(served(bench), found[0].nominal)


@story(
    "launched",
    ("launched: launched as run 0000-zti4pu24rxztwzwyyhamjv3rde, which ended as succeeded at 2025-11-13T02:14:00.510Z"),
)
def _it_ran() -> Explanation:
    return entry(lived(behaviour=QUICK, for_ms=MINUTE), "launched")


@story(
    "coalesced/overlap",
    (
        "coalesced/overlap: another job covers it (`overlap: coalesce`); decided at "
        "2025-11-13T02:16:00Z: into 0000-5rsrpxhvcfepq4vaego6apf6mi"
    ),
    ("concurrency: 1 of 1 runs of schedule flights/nightly are open: 0000-zti4pu24rxztwzwyyhamjv3rde"),
)
def _the_next_one_stands_for_it() -> Explanation:
    return entry(lived(overlap="coalesce", for_ms=4 * MINUTE), "coalesced/overlap")


@story(
    "coalesced/max_pending",
    (
        "coalesced/max_pending: another job covers it: as many as `max_pending` waited; decided at "
        "2025-11-13T02:16:00Z: into 0000-5rsrpxhvcfepq4vaego6apf6mi"
    ),
    ("concurrency: 1 of 1 runs of schedule flights/nightly are open: 0000-zti4pu24rxztwzwyyhamjv3rde"),
)
def _too_many_wait() -> Explanation:
    return entry(lived(max_pending=1, for_ms=4 * MINUTE), "coalesced/max_pending")


@story(
    "coalesced/backlog",
    (
        "coalesced/backlog: another job covers it: a resume with `backlog: coalesce`; decided at "
        "2025-11-13T02:17:22Z: into 0000-gadgiefijnou2jvmpglj3mx7ja"
    ),
    "running: attempt 1 of run 0000-gadgiefijnou2jvmpglj3mx7ja runs since 2025-11-13T02:17:22.050Z",
)
def _the_resume_wants_one_for_all() -> Explanation:
    bench = lived()
    bench.request(a_request("suspend", mode="hold"))
    bench.run(4 * MINUTE)
    bench.request(a_request("resume", backlog="coalesce"))
    bench.run(SECOND)
    return entry(bench, "coalesced/backlog")


@story(
    "skipped/overlap",
    (
        "skipped/overlap: the limit of open runs was reached (`overlap: skip`); decided at "
        "2025-11-13T02:15:00Z: still open: 0000-zti4pu24rxztwzwyyhamjv3rde"
    ),
)
def _one_runs_already() -> Explanation:
    return entry(lived(overlap="skip", for_ms=2 * MINUTE), "skipped/overlap")


@story(
    "skipped/replaced",
    (
        "skipped/replaced: a later one took its place (`overlap: keep_latest` or `cancel_running`); "
        "decided at 2025-11-13T02:16:00Z: replaced by 0000-5rsrpxhvcfepq4vaego6apf6mi"
    ),
)
def _a_later_one_waits_instead() -> Explanation:
    return entry(lived(overlap="keep_latest", for_ms=4 * MINUTE), "skipped/replaced")


@story(
    "skipped/max_pending",
    (
        "skipped/max_pending: as many jobs as `max_pending` waited (`on_overflow: reject`); decided at "
        "2025-11-13T02:16:00Z: 1 jobs of the schedule wait already"
    ),
)
def _the_queue_is_full() -> Explanation:
    return entry(lived(max_pending=1, on_overflow="reject", for_ms=4 * MINUTE), "skipped/max_pending")


@story(
    "skipped/open_instances",
    (
        "skipped/open_instances: the limit of open instances was reached: they wait for events of earlier instants (`driver: time`); "
        "decided at 2025-11-13T02:46:00.500Z: 32 instances of the schedule wait already"
    ),
)
def _too_many_instants_wait_for_their_data() -> Explanation:
    each = {**every("1m"), "driver": "time"}
    return entry(lived(all_of(each, on_data("a")), for_ms=35 * MINUTE), "skipped/open_instances")


@story(
    "skipped/outage",
    ("skipped/outage: no node served the schedule then, and `catchup` says `none`; decided at 2025-11-13T06:13:22Z"),
)
def _nobody_was_there_and_it_is_not_made_up_for() -> Explanation:
    bench = lived(every("1h"), behaviour=QUICK, catchup={"mode": "none"})
    bench.away(4 * HOUR)
    bench.run(SECOND)
    return why(served(bench), "2025-11-13T04:00:00Z")


@story(
    "skipped/dst_gap",
    "dst_gap: local time 2026-03-29 02:30:00 does not exist in Europe/Rome, and dst_gap is skip",
    (
        "skipped/dst_gap: a clock change skipped its local time (`dst_gap: skip`); decided at "
        "2026-03-29T02:30:00Z: local time 2026-03-29 02:30:00 does not exist: the clock was set forward; "
        "dst_gap is skip"
    ),
)
def _the_next_occurrence_has_written_it_down() -> Explanation:
    bench = applied_at("2026-03-29T00:00:00Z", {**ROME, "expression": "30 2,4 * * *", "dst_gap": "skip"})
    bench.run(3 * HOUR)
    return why(served(bench), "2026-03-29T02:30")


@story(
    "skipped/zone_jump",
    (
        "zone_jump: local time 2011-12-30 02:30:00 does not exist in Pacific/Apia: the zone was "
        "redefined at 2011-12-30T10:00:00Z"
    ),
    (
        "skipped/zone_jump: the zone was redefined and skipped its local time; decided at "
        "2011-12-30T12:30:00Z: local time 2011-12-30 02:30:00 does not exist: the clock was set forward; "
        "the rules of the zone changed"
    ),
)
def _samoa_had_no_30_december() -> Explanation:
    bench = applied_at("2011-12-30T09:00:00Z", {**ROME, "zone": "Pacific/Apia"})
    bench.run(5 * HOUR)
    return why(served(bench), "2011-12-30T02:30")


@story(
    "skipped/nothing_new",
    (
        "skipped/nothing_new: no event had arrived when `at_least_every` asked for a job; decided at "
        "2025-11-13T03:13:21.500Z: missing: 1 of 1 data partitions of raw"
    ),
)
def _the_reminder_found_nothing() -> Explanation:
    return entry(lived({**on_data(), "at_least_every": "1h"}, for_ms=HOUR), "skipped/nothing_new")


@story(
    "skipped/unresolved_template",
    (
        "skipped/unresolved_template: a template of its program has no value; decided at "
        "2025-11-13T02:13:22.510Z: target.program.args[0]: ${upstream.outputs.rows} has no value: "
        "upstream run 0002-mtucitec4z3bhd7ca7f3lcmbia reported these outputs: none"
    ),
)
def _the_upstream_run_reported_no_such_output() -> Explanation:
    bench = lived(on_run_of("upstream"), behaviour=QUICK, args=["${upstream.outputs.rows}"])
    bench.request(an_apply(a_spec("upstream", every("12h"))))
    bench.request(a_request("trigger", "upstream"))
    bench.run(MINUTE)
    return entry(bench, "skipped/unresolved_template")


@story(
    "skipped/concurrency",
    (
        "skipped/concurrency: a constraint with `on_unmet: abort` did not hold: the limit's number of "
        "runs is open, or jobs that wait longer come first; decided at 2025-11-13T02:13:23Z: 1 "
        "of 1 runs of schedule flights/nightly are open: 0000-gidb62cl6jwuoelicvsryqtali"
    ),
)
def _a_run_is_open_and_the_constraint_aborts() -> Explanation:
    return entry(run_twice({"type": "concurrency", "max": 1}, FOR_EVER), "skipped/concurrency")


@story(
    "skipped/window_closed",
    (
        "skipped/window_closed: a constraint with `on_unmet: abort` did not hold: no window is open; "
        "decided at 2025-11-13T02:13:22Z: the window 03:00-04:00 UTC opens at 2025-11-13T03:00:00Z"
    ),
)
def _the_window_is_closed_and_the_constraint_aborts() -> Explanation:
    return entry(run_twice(CLOSED), "skipped/window_closed")


@story(
    "skipped/ran_recently",
    (
        "skipped/ran_recently: a constraint with `on_unmet: abort` did not hold: the last start, finish "
        "or success is too recent; decided at 2025-11-13T02:13:23Z: the last start was at "
        "2025-11-13T02:13:22Z, less than 5m ago"
    ),
)
def _the_last_start_is_too_recent_and_the_constraint_aborts() -> Explanation:
    return entry(run_twice({"type": "since_last_run", "at_least": "5m", "of": "start"}), "skipped/ran_recently")


@story(
    "skipped/still_running",
    (
        "skipped/still_running: a constraint with `on_unmet: abort` did not hold: a run whose end counts "
        "is still open; decided at 2025-11-13T02:13:23Z: 1 runs of the schedule are still open, and the "
        "finish of the last one counts"
    ),
)
def _a_run_whose_end_counts_is_open_and_the_constraint_aborts() -> Explanation:
    constraint = {"type": "since_last_run", "at_least": "5m", "of": "finish"}
    return entry(run_twice(constraint, FOR_EVER), "skipped/still_running")


@story(
    "skipped/rate_reached",
    (
        "skipped/rate_reached: a constraint with `on_unmet: abort` did not hold: the rate's number of "
        "runs was admitted in its span; decided at 2025-11-13T02:13:23Z: 1 runs were admitted "
        "since 2025-11-13T01:13:23.001Z, 1 per 1h are allowed; the next may start at 2025-11-13T03:13:22Z"
    ),
)
def _one_run_an_hour_and_the_constraint_aborts() -> Explanation:
    return entry(run_twice({"type": "rate", "max": 1, "per": "1h"}), "skipped/rate_reached")


@story(
    "skipped/load_high",
    (
        "skipped/load_high: a constraint with `on_unmet: abort` did not hold: the load is at its bound, "
        "or has not fallen far enough since; decided at 2025-11-13T02:13:21Z: cpu of local is 0.9 at "
        "2025-11-13T02:13:21Z; it was at 0.85 and has not fallen below 0.85 since"
    ),
)
def _the_host_is_busy_and_the_constraint_aborts() -> Explanation:
    bench = a_bench(QUICK)
    bench.load = 0.9
    bench.request(an_apply(a_spec(trigger=every("12h"), constraints=[LOAD])))
    bench.request(a_request("trigger"))
    bench.run(20 * SECOND)
    return entry(bench, "skipped/load_high")


@story(
    "expired/catchup_window",
    ("expired/catchup_window: it was missed longer ago than `catchup.window`; decided at 2025-11-13T07:13:22Z"),
)
def _it_was_missed_too_long_ago() -> Explanation:
    bench = lived(every("1h"), behaviour=QUICK, catchup={"mode": "all", "window": "2h"})
    bench.away(5 * HOUR)
    bench.run(MINUTE)
    return why(served(bench), "2025-11-13T03:00:00Z")


@story(
    "expired/constraint_timeout",
    (
        "expired/constraint_timeout: its constraints did not hold within `pending_timeout`; decided at "
        "2025-11-13T02:29:00Z: the window 03:00-04:00 UTC opens at 2025-11-13T03:00:00Z"
    ),
)
def _the_window_opened_too_late() -> Explanation:
    return entry(lived(every("12m"), CLOSED, pending_timeout="5m", for_ms=20 * MINUTE), "expired/constraint_timeout")


@story(
    "expired/trigger_timeout",
    (
        "expired/trigger_timeout: its trigger was not satisfied in time; decided at "
        "2025-11-13T02:23:22.500Z: missing: 1 of 1 data partitions of b"
    ),
)
def _the_other_half_never_came() -> Explanation:
    bench = lived(all_of(on_data("a"), on_data("b"), timeout="10m"))
    bench.event(an_event("x", "a"))
    bench.run(20 * MINUTE)
    return entry(bench, "expired/trigger_timeout")


@story(
    "expired/evidence_expired",
    (
        "expired/evidence_expired: counted events expired (`ttl`) before the others arrived; decided "
        "at 2025-11-13T02:18:22.500Z: missing: 1 of 1 data partitions of b"
    ),
)
def _what_was_counted_ceased_to_hold() -> Explanation:
    bench = lived(all_of({**on_data("a"), "ttl": "5m"}, on_data("b"), timeout="1h"))
    bench.event(an_event("x", "a"))
    bench.run(20 * MINUTE)
    return entry(bench, "expired/evidence_expired")


@story(
    "cancelled/suspended",
    "cancelled/suspended: a suspend ended it; decided at 2025-11-13T02:14:22Z",
)
def _a_suspend_ended_it() -> Explanation:
    bench = lived(every("1m"), CLOSED, for_ms=MINUTE)
    bench.request(a_request("suspend"))
    bench.run(SECOND)
    return entry(bench, "cancelled/suspended")


@story(
    "cancelled/superseded",
    "cancelled/superseded: an update ended it; decided at 2025-11-13T02:14:22Z",
)
def _an_update_ended_it() -> Explanation:
    bench = lived(every("1m"), CLOSED, for_ms=MINUTE)
    bench.request(an_apply(a_spec(args=["new"]), "update", on_update="restart"))
    bench.run(SECOND)
    return entry(bench, "cancelled/superseded")


@story(
    "cancelled/schedule_deleted",
    "cancelled/schedule_deleted: a delete ended it; decided at 2025-11-13T02:14:22Z",
)
def _a_delete_ended_it() -> Explanation:
    bench = lived(every("1m"), CLOSED, for_ms=MINUTE)
    bench.request(a_request("delete"))
    bench.run(SECOND)
    return entry(bench, "cancelled/schedule_deleted")


@story(
    "cancelled/by_request",
    "cancelled/by_request: somebody cancelled it; decided at 2025-11-13T02:14:22Z",
)
def _somebody_cancelled_it() -> Explanation:
    bench = lived(every("1m"), CLOSED, for_ms=MINUTE)
    bench.request({"id": "c-1", "type": "job.cancel", "namespace": "flights", "job_id": the_jobs(bench)[0].id})
    bench.run(SECOND)
    return entry(bench, "cancelled/by_request")


@story(
    "cancelled/overlap",
    (
        "cancelled/overlap: a later one took its place before its program started (`overlap: "
        "cancel_running`); decided at 2025-11-13T02:15:00Z: overlap"
    ),
)
def _a_later_one_took_its_place_before_it_started() -> Explanation:
    return entry(lived(overlap="cancel_running", behaviour=NEVER_STARTS, for_ms=3 * MINUTE), "cancelled/overlap")
