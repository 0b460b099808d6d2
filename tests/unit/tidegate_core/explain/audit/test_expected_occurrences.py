"""What a schedule should have made, beside wide suspends: an instant comes due with its activation, if it lies before that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import HOUR, MINUTE, NOW, a_position, a_spec, every
from tidegate_core.commands import scope_commands
from tidegate_core.commands.scope_commands import next_suspensions
from tidegate_core.explain.audit.expected_occurrences import BOUNDED_AND_SUSPENDED, Expected, Generation, expected_of
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.request_base import ControlResume, ControlSuspend
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, SPANS_KEPT, Scope, ScopeSuspensions

INSTANT = NOW + MINUTE
ACTIVATED = INSTANT + 30 * MINUTE

FEW = 20


@pytest.fixture
def few_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many scopes whose suspends are over are kept, where production keeps 250."""
    monkeypatch.setattr(scope_commands, "OVER_MAX", FEW)


def of_one_span(*span: int) -> ScopeSuspensions:
    scope = Scope(namespace="flights", position=a_position(2).text(), spans=((span[0], span[1]),), dropped=1)
    return ScopeSuspensions(version=2, scopes=(scope,))


def asked(before: ScopeSuspensions, kind: str, at: int, namespace: str = "flights") -> ScopeSuspensions:
    """Returns what a request makes of the controls."""
    document = {"type": f"control.{kind}", "scope": "namespace", "namespace": namespace}
    request = parse_request(json.dumps(document).encode())
    assert isinstance(request, ControlSuspend | ControlResume)
    _, after = next_suspensions(before, request, Position(at, "0" * 32, 0, at), "vector")
    return after


def expected(
    suspended: tuple[int, int] | ScopeSuspensions, must_before: int | None = None, suspended_since: int | None = None
) -> Expected:
    """Returns what is due of an `at` that was asked for in time, and applied half an hour late."""
    spec = ScheduleSpec.model_validate(a_spec(trigger={"type": "at", "instant": format_instant(INSTANT)}))
    generation = Generation(
        number=1,
        incarnation="01A",
        version=1,
        fired=True,
        activated_at=ACTIVATED,
        missed_from=None,
        missed_until=None,
        must_before=must_before,
        may_through=None if must_before is None else ACTIVATED + 1,
        suspended_since=suspended_since,
    )
    controls = suspended if isinstance(suspended, ScopeSuspensions) else of_one_span(*suspended)
    return expected_of(
        "flights/nightly", [generation], lambda version: spec.model_dump_json(), controls, Window(NOW, NOW + 9 * HOUR)
    )


def test_given_a_past_instant_that_is_activated_within_a_wide_suspend_then_it_need_not_be_made() -> None:
    """It is due with the activation, and what is due in a suspended span is never a miss (SEMANTICS 10)."""
    found = expected(suspended=(INSTANT + MINUTE, ACTIVATED + MINUTE))

    assert (found.must, found.suspended) == ({}, {INSTANT})


@pytest.mark.parametrize("days", [9, 89])
def test_given_other_controls_since_then_a_wide_suspend_of_long_ago_is_remembered_as_long_as_the_ledger(
    days: int,
) -> None:
    """Found in review: the next control, of whatever namespace, dropped a scope that had gone on for 8 days, and the audit called all
    instants of its spans missing.
    """
    controls = asked(NO_SUSPENSIONS, "suspend", INSTANT + MINUTE)
    controls = asked(controls, "resume", ACTIVATED + MINUTE)
    controls = asked(controls, "suspend", ACTIVATED + days * 24 * HOUR, "orders")
    found = expected(controls)

    assert (found.must, found.suspended, found.unsure) == ({}, {INSTANT}, set())


@pytest.mark.usefixtures("few_over")
@pytest.mark.parametrize("suspended_again", [0, 3, FEW])
def test_given_a_wide_suspend_that_had_to_be_forgotten_then_nobody_says_that_something_is_missing(
    suspended_again: int,
) -> None:
    """Found in review: once some of those that had pushed it out were suspended again there seemed to be room, and nothing forgotten."""
    controls = asked(NO_SUSPENSIONS, "suspend", INSTANT + MINUTE)
    controls = asked(controls, "resume", ACTIVATED + MINUTE)
    for number in range(FEW + 1):
        controls = asked(controls, "suspend", ACTIVATED + HOUR + 2 * number, f"n-{number}")
        controls = asked(controls, "resume", ACTIVATED + HOUR + 2 * number + 1, f"n-{number}")
    for number in range(suspended_again):
        controls = asked(controls, "suspend", ACTIVATED + 2 * HOUR + number, f"n-{number + 1}")
    found = expected(controls)

    assert controls.scope("flights") is None
    assert (found.must, found.suspended, found.unsure) == ({}, set(), {INSTANT})


@pytest.mark.usefixtures("few_over")
def test_given_resumes_of_very_many_that_never_were_suspended_then_a_wide_suspend_is_remembered() -> None:
    """Found in review: a script that resumes each namespace, suspended or not, pushed out the spans of those that had been: a shard that
    had not heard of their resume yet made all instants of the span.
    """
    controls = asked(NO_SUSPENSIONS, "suspend", INSTANT + MINUTE)
    controls = asked(controls, "resume", ACTIVATED + MINUTE)
    for number in range(2 * FEW):
        controls = asked(controls, "resume", ACTIVATED + HOUR + number, f"n-{number}")
    found = expected(controls)

    assert len(controls.scopes) <= FEW + 1
    assert (found.must, found.suspended, found.unsure) == ({}, {INSTANT}, set())


def test_given_a_past_instant_that_is_activated_after_a_wide_suspend_then_it_has_to_be_made() -> None:
    """What was suspended at the instant itself has nothing to do with it."""
    found = expected(suspended=(INSTANT - MINUTE, INSTANT + MINUTE))

    assert (found.must, found.suspended) == ({"01A": {INSTANT}}, set())


def test_given_a_past_instant_whose_end_was_asked_for_before_its_activation_then_it_may_be_made() -> None:
    found = expected(suspended=(NOW - HOUR, NOW), must_before=ACTIVATED - MINUTE)

    assert (found.must, found.may) == ({}, {"01A": {INSTANT}})


def test_given_an_instant_right_behind_a_wide_suspend_then_it_has_to_be_made_however_late_its_shard_hears_of_the_end() -> (
    None
):
    found = expected(suspended=(ACTIVATED - MINUTE, ACTIVATED))

    assert (found.must, found.suspended, found.unsure) == ({"01A": {INSTANT}}, set(), set())


def test_given_a_generation_that_ended_in_a_wide_suspend_as_its_shard_knew_then_what_was_due_in_that_need_not_be_made() -> (
    None
):
    """The resume was under way, and not answered: the request that ended it may as well have come before."""
    found = expected((ACTIVATED - MINUTE, ACTIVATED), ACTIVATED + MINUTE, suspended_since=ACTIVATED - MINUTE)

    assert (found.must, found.suspended, found.unsure) == ({}, {INSTANT}, set())


# -- what is to be made up for ---------------------------------------------------------------------------------------------


def made_up_for(by_update: bool, *spans: tuple[int, int], **more: Any) -> Expected:
    """Returns what is due of a generation that is to make up for the half an hour before it, until a minute behind its activation."""
    spec = ScheduleSpec.model_validate(a_spec(trigger={**every("1m"), **more}))
    generation = Generation(
        number=1,
        incarnation="01A",
        version=1,
        fired=True,
        activated_at=ACTIVATED,
        missed_from=INSTANT,
        missed_until=ACTIVATED,
        missed_by_update=by_update,
    )
    controls = ScopeSuspensions(
        version=2, scopes=(Scope(namespace="flights", position=a_position(2).text(), spans=spans, dropped=1),)
    )
    window = Window(NOW, ACTIVATED + MINUTE)
    return expected_of("flights/nightly", [generation], lambda version: spec.model_dump_json(), controls, window)


SPAN = (INSTANT + 10 * MINUTE, INSTANT + 20 * MINUTE)


@pytest.mark.parametrize("by_update", [True, False])
def test_given_a_wide_suspend_in_what_is_made_up_for_then_an_update_makes_nothing_of_it_and_others_do(
    by_update: bool,
) -> None:
    found = made_up_for(by_update, SPAN)
    (may,) = found.may.values()
    (must,) = found.must.values()
    within = {each for each in may if SPAN[0] <= each < SPAN[1]}
    assert len(within) == 10
    assert found.suspended == may - must == (within if by_update else set())


def test_given_what_nobody_remembers_in_what_an_update_makes_up_for_then_nobody_is_sure_of_it() -> None:
    spans = [(SPAN[0] + each, SPAN[0] + each + 1) for each in range(1, SPANS_KEPT + 1)]
    found = made_up_for(True, *spans)
    (may,) = found.may.values()
    assert found.unsure == {each for each in may if each <= SPAN[0]} != set()


def test_given_a_number_of_fires_then_what_an_update_makes_up_for_around_a_wide_suspend_is_not_judged() -> None:
    assert made_up_for(True, SPAN, max_fires=40).unjudged == [BOUNDED_AND_SUSPENDED]
    assert made_up_for(False, SPAN, max_fires=40).unjudged == []
