"""The judges of `at_least_every` and of shared limits object when one fact of a world that is right is changed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.checks import violations
from tests.simulation.checks.case import Case
from tests.simulation.checks.dispositions import check_dispositions
from tests.simulation.checks.evidence import check_evidence
from tests.simulation.checks.limits import check_limits
from tests.simulation.checks.reminders import NOTICED_MS, check_reminders
from tests.simulation.checks.request_history import SKEW_MS, Segment
from tests.simulation.runner.runner import run
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.users.requests import Asked
from tests.simulation.users.schedule_definitions import NAMESPACE
from tests.simulation.users.source_users import TRAP, SourceSpan
from tests.simulation.users.tick_schedules import TRAP as TICKS
from tests.simulation.world.fault_schedule import HEAL_AFTER_MS
from tests.simulation.world.fault_waits import FaultWait
from tests.simulation.world.observations import Author, ReceiptSeen
from tests.simulation.world.timeline import START
from tests.simulation.world.world import World, build
from tests.unit.support.simulation.checks.lying import found
from tests.unit.support.simulation.checks.worlds import calm_world
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.rows.keys import shard_pk
from tidegate_core.rows.ledger import LedgerRow

SEED = 7
SEED_OF_MANY = 871_009
"""Of a world in which a run holds three permits."""
"""Of a calm world in which `rather` is left alone, and is reminded of nothing before it is reminded of something."""
REMINDED = "rather"


@pytest.fixture(scope="module")
def world() -> World:
    return calm_world(SEED)


@pytest.fixture(scope="module")
def world_of_many() -> World:
    """One in which some need three permits."""
    return calm_world(SEED_OF_MANY, TICKS)


@pytest.fixture(scope="module")
def world_of_a_source() -> World:
    """The calm world, with a source whose topic every reminder waits for."""
    return run(build(SEED, swarm=replace(swarm_of(SEED, faults=False), traps=(TRAP,))))


def reminders(case: Case) -> list[LedgerRow]:
    """Returns what reminders made of nothing, in the order of their times."""
    return sorted((row for row in case.rows_of[REMINDED] if row.reason == "nothing_new"), key=lambda row: row.nominal)


def without_reminders(case: Case, made_anew: int, number: int) -> Case:
    """Returns the case without so many reminders of the healed world, its source's topic made anew so long after the first of them."""
    begin = START + case.swarm.busy_ms + 2 * HEAL_AFTER_MS
    lost = [row for row in reminders(case) if row.nominal > begin][:number]
    changed = Case(case.world)
    changed.rows = [row for row in case.rows if row not in lost]
    topics = replace(case.swarm.topics, source_recreated=lost[0].nominal + made_anew - START)
    changed.swarm = replace(case.swarm, topics=topics)
    return changed


def announce_before_a_reminder(case: Case, monkeypatch: pytest.MonkeyPatch) -> str:
    """Dates what became a later job before the first reminder of nothing, and returns the event's id."""
    row = reminders(case)[0]
    (begin,) = [segment.begin for life in case.lives if life.name == REMINDED for segment in case.segments(life)]
    later = next(each for each in case.rows_of[REMINDED] if each.nominal > row.nominal and each.reason == "")
    seen = case.record.evidence[later.job_id]
    first, *rest = json.loads(seen.chunks[0])
    changed = json.dumps([{**first, "at": begin.done + 1_000}, *rest])
    monkeypatch.setattr(seen, "chunks", [changed, *seen.chunks[1:]])
    return str(first["event_id"])


def with_one_changed(case: Case, wanted: LedgerRow, **changes: Any) -> Case:
    changed = Case(case.world)
    changed.rows = [replace(row, **changes) if row == wanted else row for row in case.rows]
    return changed


def with_trigger(case: Case, **changes: Any) -> Case:
    """Returns the case with another trigger in what the schedule's user wrote."""
    changed = Case(case.world)
    changed.lives = [
        replace(life, definition=replace(life.definition, trigger={**life.definition.trigger, **changes}))
        if life.name == REMINDED
        else life
        for life in case.lives
    ]
    return changed


def test_given_worlds_in_which_all_is_right_then_nothing_is_wrong_and_there_is_something_to_judge(
    case: Case, world_of_many: World
) -> None:
    assert violations(case.world) == violations(world_of_many) == []
    assert len(reminders(case)) >= 2
    assert any(len(begun.in_use) >= 3 for begun in world_of_many.limits.begun)


# -- at_least_every -----------------------------------------------------------------------------------------------------


def test_given_a_reminder_that_left_nothing_then_it_never_came(case: Case) -> None:
    begin = START + case.swarm.busy_ms + 2 * HEAL_AFTER_MS
    lost = next(row for row in reminders(case) if row.nominal > begin)
    lie = Case(case.world)
    lie.rows = [row for row in case.rows if row != lost]
    assert found(check_reminders(lie), "I1", REMINDED, "was to be reminded")


@pytest.mark.parametrize(
    ("made_anew", "lost", "is_wrong"),
    [
        pytest.param(-1_000, 1, False, id="a holder may read on in the old one"),
        pytest.param(-NOTICED_MS - 1_000, 1, True, id="every holder knows of the new one"),
    ],
)
def test_given_a_source_whose_topic_is_made_anew_then_a_reminder_waits_until_every_holder_reads_the_new_one(
    world_of_a_source: World, made_anew: int, lost: int, is_wrong: bool
) -> None:
    """Seed 20502503: the new one was as long as the old one when its reader looked, which was told nothing and read on."""
    lie = without_reminders(Case(world_of_a_source), made_anew, lost)
    assert found(check_reminders(lie), "I1", REMINDED, "was to be reminded") is is_wrong


def test_given_a_source_that_is_gone_then_no_reminder_waits_for_its_topic(
    world_of_a_source: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert violations(world_of_a_source) == []
    lie = without_reminders(Case(world_of_a_source), -1_000, 1)
    assert not found(check_reminders(lie), "I1", REMINDED, "was to be reminded")
    (user,) = world_of_a_source.sources
    (span,) = user.spans
    monkeypatch.setattr(user, "spans", [SourceSpan(span.begin, end=span.begin)])
    assert found(check_reminders(lie), "I1", REMINDED, "was to be reminded")


@pytest.mark.parametrize(
    ("told", "reads", "ended", "is_wrong"),
    [
        pytest.param(-1_000, -2_000, None, False, id="who was told of the old number asks again within a minute"),
        pytest.param(-NOTICED_MS - 1_000, -NOTICED_MS - 2_000, None, True, id="it has asked again"),
    ],
)
def test_given_an_events_topic_that_has_grown_then_a_reminder_waits_until_every_holder_has_asked_again(
    case: Case, monkeypatch: pytest.MonkeyPatch, told: int, reads: int, ended: int | None, is_wrong: bool
) -> None:
    """Seed 39016627: it had asked at 2 s, its writes had no answer until 26 s, and the topic had grown at 10 s."""
    begin = START + case.swarm.busy_ms + 2 * HEAL_AFTER_MS
    lost = next(row for row in reminders(case) if row.nominal > begin)
    lie = Case(case.world)
    lie.rows = [row for row in case.rows if row != lost]
    grown = lost.nominal + told - case.swarm.topics.metadata_lag_ms - START
    lie.swarm = replace(case.swarm, topics=replace(case.swarm.topics, grown=(grown, 1)))
    stint = next(each for each in case.record.stints.values() if each.ended is None)
    before = replace(stint, events_from=lost.nominal + reads, ended=None if ended is None else lost.nominal + ended)
    monkeypatch.setitem(case.record.stints, "before", before)
    assert found(check_reminders(lie), "I1", REMINDED, "was to be reminded") is is_wrong


@pytest.mark.parametrize(
    ("begin", "end", "whose", "is_wrong"),
    [
        pytest.param(100, 8_000, "its owner's", False, id="what stood before it has no fate"),
        pytest.param(100, 200, "its owner's", True, id="the shard writer had time enough behind that"),
    ],
)
def test_given_a_lane_that_is_kept_from_a_transaction_s_fate_then_a_reminder_behind_it_has_its_time_when_that_is_over(
    case: Case, monkeypatch: pytest.MonkeyPatch, begin: int, end: int, whose: str, is_wrong: bool
) -> None:
    """Seed 20612852: the fate of a look at a run came after 17 s, and all that the shard had to decide stood behind it."""
    since = START + case.swarm.busy_ms + 2 * HEAL_AFTER_MS
    lost = next(row for row in reminders(case) if row.nominal > since)
    lie = Case(case.world)
    lie.rows = [row for row in case.rows if row != lost]
    shard = schedule_shard(NAMESPACE, REMINDED, case.swarm.shards)
    _, owner = case.record.taken[shard_pk(shard)][-1]
    author = Author("another", 1, 1) if whose == "a former owner's" else owner
    pk = shard_pk((shard + 1) % case.swarm.shards if whose == "another shard's" else shard)
    token = f"{author.owner}/0.{author.tenure}/{author.number + 1}"
    wait = FaultWait(token, lost.nominal + begin, lost.nominal + end)
    monkeypatch.setitem(case.world.cluster.store.waits.lanes, pk, [wait])
    assert found(check_reminders(lie), "I1", REMINDED, "was to be reminded") is is_wrong


def test_given_a_job_of_before_a_freeze_that_waits_on_then_reminders_after_the_resume_are_of_it(case: Case) -> None:
    """Seed 8800648: what came after the resume went into the job that the freeze had kept, and reminders made no other."""
    lie = Case(case.world)
    every = parse_duration(
        next(life for life in case.lives if life.name == REMINDED).definition.trigger["at_least_every"]
    )
    (segment,) = [each for life in case.lives if life.name == REMINDED for each in case.segments(life)]
    lie.rows = [row for row in case.rows if row.name != REMINDED or row.nominal < segment.begin.sent]
    assert found(check_reminders(lie), "I1", REMINDED, "was to be reminded")
    first = min(case.rows_of[REMINDED], key=lambda row: row.nominal)
    earlier = replace(first, nominal=segment.begin.sent - every, admitted_at=case.world.ended_at)
    lie = Case(case.world)
    lie.rows = [*(row for row in case.rows if row.name != REMINDED), earlier]
    assert not found(check_reminders(lie), "I1", REMINDED, "was to be reminded")


@pytest.mark.parametrize("wants_empty_jobs", [True])
@pytest.mark.parametrize("made", ["before the update was sent", "while it was on its way"])
def test_given_a_job_of_the_version_before_that_waits_on_then_it_is_enough_where_empty_jobs_are_wanted(
    case: Case, monkeypatch: pytest.MonkeyPatch, made: str, wants_empty_jobs: bool
) -> None:
    """Seed 36005156: an update with `finish_old` let it wait on, and no reminder made another one that would run behind it for nothing.
    Seed 40021415: it was made while the update's record waited for a broker.
    """
    lie = with_trigger(case, allow_empty=wants_empty_jobs)
    (segment,) = [each for life in case.lives if life.name == REMINDED for each in case.segments(life)]
    first = min(case.rows_of[REMINDED], key=lambda row: row.nominal)
    at = segment.begin.done if made == "while it was on its way" else segment.begin.sent
    earlier = replace(first, nominal=at - 1, admitted_at=case.world.ended_at)
    lie.rows = [*(row for row in case.rows if row.name != REMINDED), earlier]
    updated = Segment(replace(segment.begin, version=earlier.version + 1), segment.end)
    monkeypatch.setattr(lie, "segments", lambda life: [updated] if life.name == REMINDED else [])
    assert found(check_reminders(lie), "I1", REMINDED, "was to be reminded") is not wants_empty_jobs


def test_given_a_reminder_before_its_time_then_it_is_early(case: Case) -> None:
    row = reminders(case)[-1]
    assert found(check_reminders(with_one_changed(case, row, nominal=row.nominal - 5_000)), "I1", "before its time")


@pytest.mark.parametrize(
    ("told_later", "is_early"),
    [
        pytest.param(-SKEW_MS, False, id="it may have been, as its owner's clock may be ahead"),
        pytest.param(-SKEW_MS - 1, True, id="no clock is so far ahead"),
    ],
)
def test_given_a_resume_right_behind_a_suspend_then_a_reminder_that_may_be_of_before_is_not_early(
    case: Case, monkeypatch: pytest.MonkeyPatch, told_later: int, is_early: bool
) -> None:
    """Seed 34004086: a suspend that ended at 108.0 s was carried out at 107.2 s, and had cancelled the reminder of 107.0 s. Seed
    39007764: one was answered at 153.06 s, and its owner, whose clock was ahead, had made the reminder before it at 153.26 s.
    """
    row = reminders(case)[-1]
    (segment,) = [each for life in case.lives if life.name == REMINDED for each in case.segments(life)]
    begin = segment.begin
    seen = ReceiptSeen(row.nominal + told_later, {"status": "accepted"})
    stopped, resumed = (
        Asked(
            {"id": kind, "type": f"schedule.{kind}"},
            row.nominal - before,
            appended=[row.nominal - before],
            receipt=seen,
        )
        for kind, before in (("suspend", 2 * SKEW_MS), ("resume", SKEW_MS + 100))
    )
    spans = [Segment(begin, replace(begin, asked=stopped)), Segment(replace(begin, asked=resumed), None)]
    monkeypatch.setattr(case, "segments", lambda life: spans if life.name == REMINDED else [])
    assert found(check_reminders(case), "I1", REMINDED, "before its time") is is_early


@pytest.mark.parametrize("is_first", [True, False])
def test_given_a_job_of_the_same_millisecond_then_a_reminder_is_early_that_was_decided_behind_it(
    case: Case, is_first: bool
) -> None:
    """Seed 20040937: one transaction decided on a reminder that was due, and counted what came behind that."""
    row = reminders(case)[-1]
    lie = Case(case.world)
    # Nobody has seen an answer: so it may have been made as late as that.
    lie.rows = [
        *case.rows,
        replace(row, job_id="asked", trigger="manual", nominal=row.nominal + SKEW_MS, at=row.nominal, reason=""),
    ]
    lie.made_as = {row.job_id: 1, "asked": 0 if is_first else 2}
    assert found(check_reminders(lie), "I1", "before its time", row.job_id) == is_first


def test_given_a_reminder_of_nothing_then_what_became_a_later_job_had_not_come(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not found(check_reminders(case), "I3")
    event_id = announce_before_a_reminder(case, monkeypatch)
    assert found(check_reminders(Case(case.world)), "I3", REMINDED, event_id)


@pytest.mark.parametrize(
    ("is_lost", "gone_before_ms", "is_wrong"),
    [
        pytest.param(True, 0, False, id="gone with its topic by then"),
        pytest.param(True, -60_000, True, id="its topic was there"),
    ],
)
def test_given_an_event_of_a_topic_that_is_gone_then_a_reminder_may_have_come_without_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, is_lost: bool, gone_before_ms: int, is_wrong: bool
) -> None:
    """Seed 23005214: its reader had it from the old topic, and was frozen: it came to the inbox once the reminder had asked the new one."""
    event_id = announce_before_a_reminder(case, monkeypatch)
    monkeypatch.setattr(case.world.producers.announced[event_id], "lost", is_lost)
    lie = Case(case.world)
    gone_at = reminders(case)[0].nominal - gone_before_ms - START
    lie.swarm = replace(case.swarm, topics=replace(case.swarm.topics, recreated=gone_at))
    assert found(check_reminders(lie), "I3", REMINDED, event_id) is is_wrong


def test_given_a_schedule_that_wants_empty_jobs_then_an_entry_of_nothing_is_wrong(case: Case) -> None:
    lie = with_trigger(case, allow_empty=True)
    assert found(check_dispositions(lie), "I1", "nothing_new")
    assert found(check_evidence(lie), "I1", "without any evidence")


# -- shared limits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["one is not taken", "one is beyond its limit", "one is not needed"])
def test_given_a_run_that_needs_three_permits_then_it_has_just_those_and_each_within_its_limit(
    world_of_many: World, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    case = Case(world_of_many)
    begun = next(each for each in case.world.limits.begun if len(each.in_use) >= 3)
    last = max(begun.in_use)
    in_use = {
        "one is not taken": {name: number for name, number in begun.in_use.items() if name != last},
        "one is beyond its limit": {**begun.in_use, last: 100},
        "one is not needed": {**begun.in_use, "LIMIT#another": 1},
    }[wrong]
    assert not found(check_limits(case), "I4")
    monkeypatch.setattr(case.world.limits, "begun", [replace(begun, in_use=in_use)])
    assert found(check_limits(case), "I4", begun.schedule)
