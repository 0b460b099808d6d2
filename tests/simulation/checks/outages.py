"""I1 in outages: the fact is there, and what it does to a schedule's instants is what the schedule wants.

With `all` each instant has its own occurrence, up to `max_runs`. Else one occurrence stands for all instants of an outage, each of them exactly
once (`fires` counts them), and for none outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.fires import at_text, instants_of, merged_into
from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.users.absence_schedules import SEEN_MS, absences
from tests.simulation.world.timeline import START
from tidegate_core.rows import keys
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.schedule_users import Life
    from tidegate_core.rows.ledger import LedgerRow
    from tidegate_core.rows.outage import Outage

UNDER_WAY_MAX: Final = 2
"""Instants that were decided while the store was silent, before anybody could know that it would be for long."""


def check_outages(case: Case) -> Iterator[str]:
    yield from _check_facts(case)
    for life in case.lives:
        rows = [row for row in case.rows_of.get(life.name, []) if row.trigger == "time"]
        into = merged_into(rows)
        for row in rows:
            if row.job_id not in into:
                yield from _check_covering(case, life, row)
        if life.definition.catch_up != "all":
            yield from _check_missed(case, life, rows)


def _check_facts(case: Case) -> Iterator[str]:
    """A shard that was served before everybody was away has a fact that says so, if what anybody could know of it is an outage."""
    for begin, end in ((START + begin, START + end) for begin, end in absences(case.swarm)):
        if _is_in_two(case, begin, end):
            continue
        for shard in range(case.swarm.shards):
            served = any(
                stint.serving is not None and stint.serving < begin and (stint.ended is None or stint.ended >= begin)
                for stint in case.stints_of_shard(shard)
            )
            known = case.record.outages.get(shard, {})
            if served and not any(_spans(fact, _heard(case, begin), end) for fact in known):
                yield f"I1: shard {shard} was away from {at_text(begin)} to {at_text(end)}, and its facts are {_texts(known)}"


def _spans(fact: Outage, begin: int, end: int) -> bool:
    """It begins with the last sign of life, which may be one beat old, and ends when somebody is there again."""
    return fact.begin <= begin + SEEN_MS + SKEW_MS and end - SKEW_MS <= fact.end


def _check_covering(case: Case, life: Life, row: LedgerRow) -> Iterator[str]:
    name = f"{life.name} {at_text(row.nominal)}"
    if row.covered is None:
        if row.reason == "outage":
            yield f"I1: {name} was skipped with an outage, and stands for nothing in it"
        return
    mode = life.definition.catch_up
    if (mode == "none") != (row.reason == "outage"):
        yield f"I1: {name} is {row.disposition}/{row.reason} for {row.covered} instants, its schedule wants {mode}"
    stood_for = instants_of(case.trigger_of_row(life, row), row)
    suspended = sum(1 for each in stood_for if case.wide.maybe(row.namespace, each))
    if not len(stood_for) - suspended <= row.covered <= len(stood_for):
        yield f"I1: {name} says that it stands for {row.covered} instants, and stands for {len(stood_for)}"
    facts = case.record.outages.get(_shard(row), {})
    if not any(stood_for[0] in fact and stood_for[-1] in fact for fact in facts):
        yield f"I1: {name} stands for {at_text(stood_for[0])} on, which no outage spans: {_texts(facts)}"


def _check_missed(case: Case, life: Life, rows: list[LedgerRow]) -> Iterator[str]:
    """Nothing of what everybody missed is made up for one by one."""
    for begin, end in ((START + begin, START + end) for begin, end in absences(case.swarm)):
        if _is_in_two(case, begin, end):
            continue
        # What a suspend that came meanwhile has ended was never made.
        made = [row for row in rows if row.covered is None and row.reason != "suspended"]
        # Who was frozen meanwhile decides in one transaction on what was due by then, before it can know of the outage.
        first = _went_on(case, begin, begin + OUTAGE_GRACE_MS) + SKEW_MS
        alone = [row.nominal for row in made if first < row.nominal < end - SKEW_MS]
        if len(alone) > UNDER_WAY_MAX:
            yield (
                f"I1: {len(alone)} instants of {life.name} from {at_text(alone[0])} on were made one by one, although it was "
                f"away from {at_text(begin)} to {at_text(end)}"
            )


def _heard(case: Case, begin: int) -> int:
    """Returns until when somebody may have heard the last that the store answered.

    Who is frozen by then hears only as it goes on what the store had answered to what had reached it before, so that its sign of life
    says that much. By the grace it would know better.
    """
    return _went_on(case, begin, begin + case.swarm.store.under_way_ms_max)


def _is_in_two(case: Case, begin: int, end: int) -> bool:
    """Whether it was a freeze and a silence behind it, each of them within the grace: no outage (seed 20620416: 17 s and 59 s)."""
    heard = _heard(case, begin)
    return heard > begin and end - heard < OUTAGE_GRACE_MS + SKEW_MS


def _went_on(case: Case, begin: int, frozen_by: int) -> int:
    """Returns when the last node went on that was frozen by then, and no longer than the grace, or `begin`."""
    return max(
        (
            goes_on
            for _, start, goes_on in case.record.pauses
            if start <= frozen_by and begin < goes_on < begin + OUTAGE_GRACE_MS
        ),
        default=begin,
    )


def _shard(row: LedgerRow) -> int:
    return keys.shard_of_run(row.job_id)


def _texts(facts: Iterable[Outage]) -> list[str]:
    return [f"{at_text(fact.begin)}-{at_text(fact.end)}" for fact in facts]
