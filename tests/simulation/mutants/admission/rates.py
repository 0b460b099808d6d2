"""Bugs in the rates that schedules share: what an admission demands, how long it counts, and what is taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
from tests.simulation.users.shared_limits import RATES
from tidegate_core.admission import limit_coordinator, permits
from tidegate_core.commands import end_pending, pending_pages
from tidegate_core.language.constraints.facts import Span
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Update
from tidegate_core.runs import run_completion
from tidegate_core.shard.limits import limit_queue_entry
from tidegate_core.writes.rate_counters import Counted

SHARED_RATES_TOLD_TESTS = "unit/tidegate_core/admission/test_shared_rates_told.py"


def demanding_nothing(count: Callable[..., Update]) -> Any:
    return lambda *arguments, **named: replace(count(*arguments, **named), condition=None)


def not_counting_what_is_forced(
    count: Callable[..., Counted], unit: Any, limit: Any, key: Any, job: Any, now: int
) -> Counted:
    if job.forced is None:
        return count(unit, limit, key, job, now)
    return Counted(key, now)


def keeping_its_rates(park_run: Callable[..., None], unit: Any, run: Any, *rest: Any) -> None:
    park_run(unit, replace(run, limits=tuple(limit for limit in run.limits if "|RATE#" not in limit)), *rest)


HOME_LEAVES_IT: Final = Patch(limit_coordinator, "EXPIRED_MAX", instead(1 << 30))


def leaving_what_has_expired(
    count: Callable[..., Update],
    of: Counted,
    job_id: str,
    most: int,
    state: SharedLimit,
    now: int,
    *,
    forced: bool = False,
) -> Update:
    return count(of, job_id, most, replace(state, counts={}) if forced else state, now, forced=forced)


RATE_BUGS: Final = (
    Mutant(
        "rate bound",
        "two shards admit at the same moment what a rate has one place for",
        breaks="I4",
        patches=(Patch(limit_queue_entry, "count_admission", demanding_nothing),),
        killed_by="unit/tidegate_core/admission/test_shared_rates.py::test_given_a_crowd_of_schedules_on_as_many_shards_due_at_once_then_no_minute_has_more_than_the_rate[3-group]",
    ),
    Mutant(
        "rate span",
        "an admission counts for half of its span",
        breaks="I4",
        patches=(Patch(Span, "counts_until", instead(lambda span, now, known: now + span.per // 2)),),
        killed_by=Seeds(within=3, trap=RATES),
    ),
    Mutant(
        "rate forced",
        "what a pending time-out forces counts for nobody",
        breaks="I4",
        patches=(Patch(permits, "count_in_rate", around(not_counting_what_is_forced)),),
        killed_by=Seeds(within=3, trap=RATES),
    ),
    Mutant(
        "rate back after all",
        "a run that has started is taken out of its rate when it ends",
        breaks="I4",
        patches=(Patch(run_completion, "never_started", returning(True)),),
        killed_by=Seeds(within=3, trap=RATES),
    ),
    Mutant(
        "rate leak",
        "a run that is made a job again counts on, and once more when it is admitted again",
        breaks="I4",
        patches=(
            Patch(end_pending, "park_run", around(keeping_its_rates)),
            Patch(pending_pages, "park_run", around(keeping_its_rates)),
        ),
        killed_by=Seeds(within=70, directed=(28,), trap=RATES),
    ),
    Mutant(
        "rate heap",
        "forced admissions leave in their rate what has expired, until no condition can name it all",
        breaks="liveness",
        patches=(Patch(limit_queue_entry, "count_admission", around(leaving_what_has_expired)),),
        killed_by=f"{SHARED_RATES_TOLD_TESTS}::test_given_a_rate_whose_admissions_are_all_forced_then_its_item_stays_small_and_others_pass_once_there_is_room",
        beside=(HOME_LEAVES_IT,),
    ),
    Mutant(
        "rate rest",
        "the home takes expired admissions out as it offers only, and what one write takes out makes no room",
        breaks="liveness",
        patches=(HOME_LEAVES_IT,),
        killed_by=f"{SHARED_RATES_TOLD_TESTS}::test_given_more_expired_counts_than_a_write_takes_out_then_the_home_sees_to_it_for_who_waits",
    ),
)
