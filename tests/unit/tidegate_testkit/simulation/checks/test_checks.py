"""Each check objects when one fact of a world that is right is changed: a judge that accepts everything proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from tidegate_core.records.outages import Outage
from tidegate_core.records.run_plane import LedgerRow
from tidegate_core.store import keys
from tidegate_testkit.simulation.checks import outages, violations
from tidegate_testkit.simulation.checks.answers import check_answers
from tidegate_testkit.simulation.checks.case import A_MESSAGE_WAITS_FOR, Case
from tidegate_testkit.simulation.checks.constraints import check_constraints
from tidegate_testkit.simulation.checks.dispositions import check_dispositions
from tidegate_testkit.simulation.checks.events import check_events
from tidegate_testkit.simulation.checks.evidence import check_evidence
from tidegate_testkit.simulation.checks.fires import at_text, check_fires
from tidegate_testkit.simulation.checks.history import SKEW_MS
from tidegate_testkit.simulation.checks.messages import check_messages
from tidegate_testkit.simulation.checks.outages import check_outages
from tidegate_testkit.simulation.checks.overlap import check_overlap
from tidegate_testkit.simulation.checks.recurring import SETTLE_MS, UNDER_WAY, check_recurring, turn_of
from tidegate_testkit.simulation.checks.repeats import REPEATS_MAX, check_repeats
from tidegate_testkit.simulation.checks.rest import check_rest
from tidegate_testkit.simulation.checks.runs import check_runs
from tidegate_testkit.simulation.letters import Letter
from tidegate_testkit.simulation.record import Delivery
from tidegate_testkit.simulation.running import run
from tidegate_testkit.simulation.timeline import START
from tidegate_testkit.simulation.world import World, build

SEED = 8
SEED_WITH_AN_AT = 41
"""Of a calm world with a message that is due once, and is delivered."""
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def world() -> World:
    """A calm world at rest: in it everything is as it should be."""
    return run(build(SEED, faults=False))


@pytest.fixture
def case(world: World) -> Case:
    return Case(world)


def found(problems: Iterable[str], invariant: str, *words: str) -> bool:
    return any(each.startswith(f"{invariant}:") and all(word in each for word in words) for each in problems)


def with_rows(case: Case, change: Callable[[LedgerRow], LedgerRow | None]) -> Case:
    """Returns the case with a ledger in which each entry is what `change` makes of it (None: it is not there)."""
    changed = Case(case.world)
    changed.rows = [row for row in map(change, case.rows) if row is not None]
    return changed


def one_of(case: Case, name: str, trigger: str) -> LedgerRow:
    return next(row for row in case.rows_of[name] if row.trigger == trigger and row.disposition == "launched")


def changed_one(case: Case, wanted: LedgerRow, **changes: Any) -> Case:
    return with_rows(case, lambda row: replace(row, **changes) if row == wanted else row)


def test_given_a_calm_world_then_nothing_is_wrong(world: World) -> None:
    assert violations(world) == []


# -- the ledger --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tick", "count", "after-tick"])
@pytest.mark.parametrize(
    ("disposition", "reason"),
    [
        ("skipped", "because"),
        ("skipped", "concurrency"),
        ("coalesced", "into"),
        ("expired", "constraint_timeout"),
        ("expired", "trigger_timeout"),
        ("cancelled", "by_request"),
        ("cancelled", "schedule_deleted"),
        ("cancelled", "suspended"),
        ("cancelled", "superseded"),
    ],
)
def test_given_a_reason_that_is_not_true_then_it_is_no_disposition(
    case: Case, name: str, disposition: str, reason: str
) -> None:
    row = next(each for each in case.rows_of[name] if each.disposition == "launched")
    # Long after everything: nothing that a user asked for explains it.
    lie = changed_one(case, row, disposition=disposition, reason=reason, at=row.at + 10 * MINUTE_MS)
    assert found(check_dispositions(lie), "I1", row.job_id)


def test_given_an_instant_without_entry_then_it_was_lost(case: Case) -> None:
    row = one_of(case, "tick", "time")
    assert found(check_fires(with_rows(case, lambda each: None if each == row else each)), "I1", "tick")


def test_given_an_instant_that_is_not_the_triggers_then_it_should_not_be(case: Case) -> None:
    row = one_of(case, "tick", "time")
    assert found(check_fires(changed_one(case, row, nominal=row.nominal + 1)), "I1", "tick")


def test_given_satisfied_evidence_without_entry_then_an_occurrence_vanished(case: Case) -> None:
    row = one_of(case, "count", "events")
    problems = check_evidence(with_rows(case, lambda each: None if each == row else each))
    assert found(problems, "I1", row.job_id, "no entry")


def test_given_an_entry_of_events_without_evidence_then_it_came_from_nowhere(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = one_of(case, "count", "events")
    monkeypatch.setattr(case.record.evidence[row.job_id], "chunks", [])
    assert found(check_evidence(Case(case.world)), "I1", row.job_id, "without any evidence")


@pytest.mark.parametrize("later", [0, 1])
def test_given_a_pair_that_expired_although_both_came_in_time_then_only_brokers_that_did_not_tell_of_one_excuse_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """A time-out waits for the ends of what the brokers tell of; after a growth that is too little for a while."""
    life = next(life for life in case.lives if life.name == "pair")
    row = one_of(case, "pair", "events")
    halves = [each for each in case.world.producers.announced.values() if each.partition == row.correlation]
    first, deadline = min(each.appended[0] for each in halves), row.at + MINUTE_MS
    lie = changed_one(case, row, disposition="expired", reason="trigger_timeout", nominal=first, at=deadline)
    trigger = {**life.definition.trigger, "timeout": f"{deadline - first}ms"}
    lie.lives = [replace(life, definition=replace(life.definition, trigger=trigger))]
    assert found(check_dispositions(lie), "I1", row.job_id, "came in time")
    monkeypatch.setattr(halves[0], "untold_until", deadline + later)
    assert found(check_dispositions(lie), "I1", row.job_id, "came in time") is (later == 0)


def test_given_a_program_that_nobody_started_then_the_ledger_lies(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    row = one_of(case, "tick", "time")
    bodies = [body for body in case.record.bodies if body.run_id != row.job_id]
    monkeypatch.setattr(case.record, "bodies", bodies)
    assert found(check_runs(Case(case.world)), "I1", row.job_id)


def test_given_a_program_that_started_twice_then_the_gate_failed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case.record, "bodies", [*case.record.bodies, case.record.bodies[0]])
    assert found(check_runs(Case(case.world)), "I2", "2 times")


def test_given_an_event_in_two_pieces_of_evidence_then_it_counted_twice(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = one_of(case, "count", "events")
    seen = case.record.evidence[row.job_id]
    monkeypatch.setattr(seen, "chunks", [*seen.chunks, *seen.chunks])
    assert found(check_events(Case(case.world)), "I3", "2 times")


# -- recurring messages ------------------------------------------------------------------------------------------------


def test_given_a_refused_at_that_was_not_delivered_then_only_a_version_that_did_not_promise_it_is_excused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case(run(build(SEED_WITH_AN_AT, faults=False)))
    (life,) = [life for life in case.recurring if life.definition.trigger["type"] == "at"]
    (segment,) = case.segments(life)
    receipt = segment.begin.asked.receipt
    assert receipt is not None
    (nominal,) = [each.nominal for each in case.record.deliveries if each.message.startswith(f"{life.name}/")]
    assert not found(check_recurring(case), "I1", life.name)
    others = [each for each in case.record.deliveries if not each.message.startswith(f"{life.name}/")]
    monkeypatch.setattr(case.record, "deliveries", others)
    occurrence = f"{life.name}@{nominal}"
    case.record.refused[occurrence].append(segment.begin.done)
    assert found(check_recurring(case), "I1", life.name)
    monkeypatch.setitem(receipt.body, "next", [])
    assert not found(check_recurring(case), "I1", life.name)
    for at in (segment.begin.sent - 1, segment.begin.done + 1):
        case.record.refused[occurrence] = [at]
        assert found(check_recurring(case), "I1", life.name), "in another life, or under this version"


# -- messages ----------------------------------------------------------------------------------------------------------


def of_letters(case: Case) -> Iterator[Delivery]:
    """Yields the deliveries of what was sent by itself, not by a schedule."""
    return (each for each in case.record.deliveries if each.message in case.world.senders.letters)


def letters_known_early(case: Case) -> Iterator[Letter]:
    return (each for each in case.world.senders.letters.values() if each.due > max(each.records) + MINUTE_MS // 4)


def expired_unsent(case: Case, letter: Letter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letter, "expire_ms", 4_000)
    monkeypatch.setattr(letter, "ended", None)
    others = [each for each in case.record.deliveries if each.message != letter.name]
    monkeypatch.setattr(case.record, "deliveries", others)


def test_given_a_message_that_is_not_there_then_it_was_lost(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = case.world.senders.letters
    plain = next(
        each
        for each in of_letters(case)
        if letters[each.message].ended is None and letters[each.message].expire_ms is None
    )
    others = [each for each in case.record.deliveries if each.message != plain.message]
    monkeypatch.setattr(case.record, "deliveries", others)
    assert found(check_messages(case), "I8", f"{plain.message},", "0 of 1")


def test_given_a_message_that_may_expire_and_is_not_there_then_it_was_lost_in_a_calm_world(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    letter = next(letters_known_early(case))
    expired_unsent(case, letter, monkeypatch)
    assert found(check_messages(case), "I8", f"{letter.name},", "0 of 1")


def test_given_a_message_whose_record_nobody_read_in_time_then_it_may_have_expired(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 300227: its shard was served all along, the topic partition of its record had an owner at the last moment."""
    owners = case.swarm.topic_partitions
    letter = next(
        each for each in letters_known_early(case) if each.shards[0] % owners != each.positions[0].topic_partition
    )
    expired_unsent(case, letter, monkeypatch)
    late = {
        name: replace(stint, serving=letter.due)
        for name, stint in case.record.stints.items()
        if stint.topic_partition == letter.positions[0].topic_partition
    }
    monkeypatch.setattr(case.record, "stints", {**case.record.stints, **late})
    assert not found(check_messages(case), "I8", f"{letter.name},")


def test_given_a_message_before_its_time_then_it_is_early(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(of_letters(case))
    early = replace(first, sent=replace(first.sent, clock=case.world.senders.letters[first.message].due - 1))
    monkeypatch.setattr(case.record, "deliveries", [early])
    assert found(check_messages(case), "I8", first.message, "1 ms early")


def test_given_a_repeat_of_the_same_owner_then_it_is_no_crash(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    first = case.record.deliveries[0]
    monkeypatch.setattr(case.record, "deliveries", [first, first])
    assert found(check_repeats(case), "I8", first.message, "twice")


def test_given_a_repeat_after_an_orderly_hand_over_then_the_checkpoint_is_missing(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = case.record.deliveries[0]
    stint = case.record.stints[first.sent.stint]
    monkeypatch.setattr(stint, "ended", first.sent.at + 1)
    monkeypatch.setattr(stint, "orderly", True)
    monkeypatch.setattr(case.record, "deliveries", [first, _again(first)])
    assert found(check_repeats(case), "I8", first.message, "orderly")


@pytest.mark.parametrize(
    ("number", "age_ms", "is_wrong"),
    [
        pytest.param(REPEATS_MAX, MINUTE_MS, False, id="as many as may be, however old"),
        pytest.param(REPEATS_MAX + 1, 4_000, False, id="more, of the last seconds"),
        pytest.param(REPEATS_MAX + 1, MINUTE_MS, True, id="more, and older"),
    ],
)
def test_given_repeats_after_a_crash_then_they_are_bounded_by_number_or_age(
    case: Case, monkeypatch: pytest.MonkeyPatch, number: int, age_ms: int, is_wrong: bool
) -> None:
    first = case.record.deliveries[0]
    monkeypatch.setattr(case.record.stints[first.sent.stint], "ended", first.sent.at + age_ms)
    repeated = [replace(first, id=f"{first.id}-{each}") for each in range(number)]
    monkeypatch.setattr(case.record, "deliveries", [*repeated, *map(_again, repeated)])
    assert found(check_repeats(case), "I8", f"{number} messages") == is_wrong


def _again(delivery: Delivery) -> Delivery:
    return replace(delivery, sent=replace(delivery.sent, at=delivery.sent.at + 1, stint="the next one"))


# -- rest --------------------------------------------------------------------------------------------------------------


def test_given_a_late_write_that_changed_something_then_a_former_owner_was_heard(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case.world, "came_late", ("bodies: +1",))
    assert found(check_rest(case), "I5", "bodies: +1")


@pytest.mark.parametrize(
    "constraint",
    [{"type": "rate", "max": 2, "per": "4s"}, {"type": "since_last_run", "at_least": "4s", "of": "success"}],
)
@pytest.mark.parametrize("is_forced", [True, False])
def test_given_admissions_of_one_instant_then_those_that_were_forced_came_after_the_one_that_a_constraint_let_go(
    case: Case, constraint: dict[str, Any], is_forced: bool
) -> None:
    """Seed 800274: the ledger does not tell their order."""
    life = next(life for life in case.lives if life.name == "tick")
    row = one_of(case, "tick", "time")
    forced = "{}" if is_forced else None
    definition = replace(life.definition, constraints=(constraint,), pending_timeout="1ms", late="force")
    changed = with_rows(case, lambda each: None)
    changed.rows = [replace(row, job_id=f"forced-{number}", forced=forced) for number in range(2)] + [row]
    changed.lives = [replace(life, definition=definition)]
    assert found(check_constraints(changed), "constraints", row.job_id) is not is_forced


@pytest.mark.parametrize(
    ("missed", "objects"),
    [("none", True), ("the older one", False), ("both", True), ("the newer one later", False)],
)
def test_given_a_run_that_is_admitted_after_a_newer_one_then_only_what_was_missed_may_be(
    case: Case, monkeypatch: pytest.MonkeyPatch, missed: str, objects: bool
) -> None:
    """Seed 801025: what is made up for after an outage runs one at a time, and what is due now goes beside it.

    Seed 5001314: an outage goes on behind what an owner made who was there for two seconds, and never said so.
    """
    life = next(life for life in case.lives if life.name == "tick")
    row = one_of(case, "tick", "time")
    newer = replace(row, nominal=row.nominal + MINUTE_MS, admitted_at=row.nominal + MINUTE_MS)
    older = replace(row, admitted_at=row.nominal + 2 * MINUTE_MS)
    lie = with_rows(case, lambda each: None)
    lie.rows = [older, newer]
    lie.lives = [replace(life, definition=replace(life.definition, overlap="queue", most=1, constraints=()))]
    ends = {"none": (0,), "the older one": (1,), "both": (MINUTE_MS + 1,), "the newer one later": (1, 2 * MINUTE_MS)}
    known = {Outage(row.nominal, row.nominal + end): None for end in ends[missed]}
    facts = {keys.shard_of_run(row.job_id): known}
    monkeypatch.setattr(case.record, "outages", facts)
    assert found(check_overlap(lie), "order", "tick") is objects


@pytest.mark.parametrize("frozen", [False, True])
def test_given_instants_that_were_made_one_by_one_while_nobody_was_there_then_only_a_freeze_until_then_excuses_them(
    case: Case, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    """Seed 800496: a node that goes on decides what is due by then, and its transaction may arrive in spite of all."""
    life = next(life for life in case.lives if life.name == "tick")
    rows = [row for row in case.rows_of["tick"] if row.trigger == "time" and row.covered is None]
    first, last = rows[0].nominal - SKEW_MS - 1, rows[3].nominal + SKEW_MS + 1
    changed = Case(case.world)
    changed.lives = [replace(life, definition=replace(life.definition, catch_up="last"))]
    monkeypatch.setattr(outages, "absences", lambda _: [(first - START, last - START)])
    monkeypatch.setattr(case.record, "pauses", [("node0", first - 1, last)] if frozen else [])
    assert found(check_outages(changed), "I1", "one by one") is not frozen


@pytest.mark.parametrize("frozen", [False, True])
def test_given_a_fact_that_begins_late_then_only_a_freeze_until_then_excuses_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    """A node that goes on hears only then what the store answered before it fell silent."""
    begin, late, end = 20_000, 40_000, 90_000
    facts = {shard: {Outage(START + late, START + end): None} for shard in range(case.swarm.shards)}
    monkeypatch.setattr(outages, "absences", lambda _: [(begin, end)])
    monkeypatch.setattr(case.record, "outages", facts)
    monkeypatch.setattr(case.record, "pauses", [("node0", START + begin - 1, START + late)] if frozen else [])
    assert found(check_outages(case), "I1", "its facts are") is not frozen


@pytest.mark.parametrize(
    ("changes", "disturbed"),
    [
        ({"hunted": ("hold",)}, True),
        ({"hunted": ("fire",)}, False),
        ({"aimed": ("checkpoint",), "aimed_outs": ((10, 20),)}, True),
        ({"aimed": ("fire",), "aimed_outs": ((10, 20),)}, False),
    ],
)
def test_given_faults_that_aim_at_what_sending_waits_for_then_it_is_disturbed(
    case: Case, changes: dict[str, Any], disturbed: bool
) -> None:
    """Seed 802331."""
    case.swarm = replace(case.swarm, store=replace(case.swarm.store, **changes))
    assert case.is_disturbed(START + 15, START + 18) is disturbed


@pytest.mark.parametrize(
    ("sent", "at_a_time", "turn"),
    [
        pytest.param([], 1, 0, id="nothing ahead"),
        pytest.param([(3_000, 5)], 1, 3_000, id="one ahead"),
        pytest.param([(3_000, 5), (6_500, 6)], 1, 6_500, id="a backlog"),
        pytest.param([(3_000, 5), (6_500, 6)], 2, 3_000, id="a backlog of which two go at a time"),
        pytest.param([(3_000, 5), (6_500, 6)], None, 0, id="a backlog that goes together"),
        pytest.param([(3_000, 5), (3_001 + SETTLE_MS, 6)], 1, 3_000, id="a pause behind it"),
        pytest.param([(3_000, 10)], 1, 0, id="nothing that was due before"),
        pytest.param([(1_000, 5)] * 20 + [(3_000, 6)], None, 1_000, id="one more than may be under way"),
    ],
)
def test_given_a_backlog_then_a_fire_has_its_turn_when_as_few_are_left_as_may_be_under_way(
    case: Case, monkeypatch: pytest.MonkeyPatch, sent: list[tuple[int, int]], at_a_time: int | None, turn: int
) -> None:
    """Seed 810403: one at a time. Elsewhere what is tried again, or late, holds no fire up."""
    of_another_shard = replace(case.record.deliveries[0], id="0002-a", nominal=START, at=START + 1_000)
    ahead = [replace(of_another_shard, id="0001-a", nominal=START + due, at=START + at) for at, due in sent]
    monkeypatch.setattr(case.record, "deliveries", [of_another_shard, *ahead])
    case.swarm = replace(case.swarm, knobs=() if at_a_time is None else ((UNDER_WAY, at_a_time),))
    assert turn_of(case, 1, START + 10, START) == START + turn


@pytest.mark.parametrize(("at_a_time", "is_lost"), [(None, True), (1, False)])
def test_given_a_fire_that_was_lost_behind_a_trickle_then_only_a_world_that_sends_one_at_a_time_excuses_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, at_a_time: int | None, is_lost: bool
) -> None:
    """A judge that takes whatever was due before a fire for something in its way never misses it."""
    life = next(life for life in case.recurring if life.name == "ping")
    end = max(segment.end.sent for segment in case.segments(life) if segment.end is not None)
    mine = [each for each in case.record.deliveries if each.message.startswith("ping/")]
    lost = max((each for each in mine if each.nominal < end - 3 * SETTLE_MS), key=lambda each: each.nominal)
    trickle = [
        replace(lost, message="m", nominal=lost.nominal - 1, at=at) for at in range(lost.nominal, end, SETTLE_MS // 2)
    ]
    assert not found(check_recurring(case), "I1", "ping")
    others = [each for each in case.record.deliveries if each != lost]
    monkeypatch.setattr(case.record, "deliveries", [*others, *trickle])
    case.swarm = replace(case.swarm, knobs=() if at_a_time is None else ((UNDER_WAY, at_a_time),))
    assert found(check_recurring(case), "I1", "ping", at_text(lost.nominal), "was due") is is_lost


def test_given_faults_that_aim_at_the_position_then_a_message_may_come_too_late(case: Case) -> None:
    """Seed 745083: its record was handed over after it had expired."""
    case.swarm = replace(case.swarm, store=replace(case.swarm.store, aimed=("cursor",), aimed_outs=((10, 20),)))
    assert case.is_disturbed(START + 15, START + 18, A_MESSAGE_WAITS_FOR)
    assert not case.is_disturbed(START + 15, START + 18)


@pytest.mark.parametrize(
    ("status", "errors", "word"),
    [
        pytest.param("rejected", [], "nobody said why", id="refused without a reason"),
        pytest.param("conflict", [{"field": "name"}], "nobody said why", id="refused with an empty one"),
        pytest.param("accepted", [{"problem": "is wrong"}], "with problems", id="carried out, with a reason"),
        pytest.param("rejected", [{"problem": "internal error"}], "an error of ours", id="a fault of ours"),
    ],
)
def test_given_an_answer_whose_reasons_do_not_fit_then_it_is_told(
    case: Case, status: str, errors: list[Any], word: str
) -> None:
    request_id, (seen, *_) = next(iter(sorted(case.record.receipts.items())))
    told = replace(seen, body={**seen.body, "status": status, "errors": errors})
    with mock.patch.dict(case.record.receipts, {request_id: [told]}):
        assert found(check_answers(case), "answers", request_id, word)
    assert not found(check_answers(case), "answers", request_id)
