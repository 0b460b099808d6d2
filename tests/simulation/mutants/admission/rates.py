"""Bugs in the rates that schedules share: what an admission demands, how long it counts, and what is taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import Stage, writing
from tests.simulation.users.shared_limits import RATES
from tests.support.builders import MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import Behaviour, Bench
from tidegate_core.constraints.spans import Span
from tidegate_core.decisions.run_plane import home_limits, parking, rates, run_ends
from tidegate_core.records.limits import GONE_MAX, SharedLimit
from tidegate_core.store import keys
from tidegate_core.store.values import Transaction, Update
from tidegate_core.transactions.rates import Counted, count_admission


def demanding_nothing(count: Callable[..., Update]) -> Any:
    return lambda *arguments, **named: replace(count(*arguments, **named), condition=None)


def counting_half_the_span(_: Any) -> Any:
    return lambda span, now, known: now + span.per // 2


def not_counting_what_is_forced(count: Callable[..., Counted]) -> Any:
    def counted(unit: Any, limit: Any, key: Any, job: Any, now: int) -> Counted:
        if job.forced is None:
            return count(unit, limit, key, job, now)
        return Counted(key, now)

    return counted


def keeping_what_came_to_nothing(give_back: Callable[..., None]) -> Any:
    def given(unit: Any, limit: str, run: Any, now: int) -> None:
        if "|RATE#" not in limit:
            give_back(unit, limit, run, now)

    return given


HOME_LEAVES_IT: Final = Patch(home_limits, "EXPIRED_MAX", lambda _: 1 << 30)


def leaving_what_has_expired(count: Callable[..., Update]) -> Any:
    def counted(of: Counted, job_id: str, most: int, state: SharedLimit, now: int, *, forced: bool = False) -> Update:
        return count(of, job_id, most, replace(state, counts={}) if forced else state, now, forced=forced)

    return counted


def two_shards_admit_at_one_moment() -> Iterable[str]:
    """Both have read the item when nobody counted in it; the first one's write arrives after the second one's."""
    bench = Stage(behaviour=Behaviour(starts_after=10, runs_for=50)).first
    for name in ("one", "two"):
        bench.request(an_apply(a_spec(name, every("10s"), constraints=[a_rate()])))
    bench.hold_back(writing("R#"))
    bench.run(12 * SECOND)
    bench.release()
    bench.run(SECOND)
    if len(bench.started) > 1:
        yield f"I4: {len(bench.started)} runs were admitted within a minute that has one place"


def all_are_forced_for_a_time() -> Iterable[str]:
    """Then nobody comes any more, and long after that somebody else."""
    bench = Stage(behaviour=Behaviour(starts_after=10, runs_for=50)).first
    desk = a_rate()
    forced = {"pending_timeout": "1s", "pending_timeout_action": "force", "overlap": "allow"}
    bench.request(an_apply(a_spec("hasty", every("10s"), constraints=[desk], **forced)))
    bench.run(40 * MINUTE)
    bench.request(a_request("suspend", "hasty", mode="drop"))
    bench.run(2 * MINUTE)
    return somebody_passes(bench, desk)


def many_have_counted_at_one_moment() -> Iterable[str]:
    bench = Stage(behaviour=Behaviour(starts_after=10, runs_for=50)).first
    bench.run(SECOND)
    rate = keys.shared_rate("flights", "group", "desk", MINUTE, None)
    for number in range(3 * GONE_MAX):
        first = Counted(rate, bench.now - number)
        forced = count_admission(first, f"job-{number}", 1, SharedLimit(), bench.now, forced=True)
        bench.transact(Transaction("admit", (forced,), f"node-b/0.0/{number}", None))
    return somebody_passes(bench, a_rate())


def a_rate() -> Doc:
    return {"type": "rate", "max": 1, "per": "1m", "scope": "group", "group": "desk"}


def somebody_passes(bench: Bench, rate: Doc) -> Iterable[str]:
    bench.request(an_apply(a_spec("calm", every("10h"), constraints=[rate])))
    bench.request(a_request("trigger", "calm"))
    begun = len(bench.started)
    bench.run(20 * SECOND)
    if len(bench.started) == begun:
        yield "liveness: nothing counts in the rate any more, and nobody is admitted"


RATE_BUGS: Final = (
    Mutant(
        "rate bound",
        "two shards admit at the same moment what a rate has one place for",
        breaks="I4",
        patches=(Patch(rates, "count_admission", demanding_nothing),),
        scenario=two_shards_admit_at_one_moment,
    ),
    Mutant(
        "rate span",
        "an admission counts for half of its span",
        breaks="I4",
        patches=(Patch(Span, "counts_until", counting_half_the_span),),
        within=3,
        trap=RATES,
    ),
    Mutant(
        "rate forced",
        "what a pending time-out forces counts for nobody",
        breaks="I4",
        patches=(Patch(rates, "count", not_counting_what_is_forced),),
        within=3,
        trap=RATES,
    ),
    Mutant(
        "rate back after all",
        "a run that has started is taken out of its rate when it ends",
        breaks="I4",
        patches=(Patch(run_ends, "came_to_nothing", lambda _: lambda run: True),),
        within=3,
        trap=RATES,
    ),
    Mutant(
        "rate leak",
        "a run that is made a job again counts on, and once more when it is admitted again",
        breaks="I4",
        patches=(Patch(parking, "give_permit_back", keeping_what_came_to_nothing),),
        within=70,
        trap=RATES,
        directed=(28,),
    ),
    Mutant(
        "rate heap",
        "forced admissions leave in their rate what has expired, until no condition can name it all",
        breaks="liveness",
        patches=(Patch(rates, "count_admission", leaving_what_has_expired),),
        scenario=all_are_forced_for_a_time,
        beside=(HOME_LEAVES_IT,),
    ),
    Mutant(
        "rate rest",
        "the home takes expired admissions out as it offers only, and what one write takes out makes no room",
        breaks="liveness",
        patches=(HOME_LEAVES_IT,),
        scenario=many_have_counted_at_one_moment,
    ),
)
