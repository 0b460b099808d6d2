"""Each kind of target has rules, a fire route and an audit, which agree on where its occurrences are."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tidegate_core.commands.fire_route import ROUTES_BY_KIND, route_of
from tidegate_core.explain.target_audit import AUDITS_BY_KIND, audit_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec, Target
from tidegate_core.language.definitions.schedule_validation import fitting_problems
from tidegate_core.language.targets.target_rules import RULES_BY_KIND
from tidegate_core.language.triggers.search import Next
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.document import Document
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.schedule import ScheduleState

TARGETS: tuple[type[Document], ...] = get_args(get_args(Target)[0])
MIDNIGHT = parse_instant("2026-01-02T00:00:00Z")


def kind_of(target: type[Document]) -> str:
    return str(target.model_fields["type"].default)


def a_schedule(target: type[Document], **changes: Any) -> ScheduleSpec:
    document = {"namespace": "flights", "name": "daily", "trigger": {"type": "cron", "expression": "0 0 * * *"}}
    return ScheduleSpec.model_validate({**document, "target": target.EXAMPLE, **changes})


def a_state(following: Next) -> ScheduleState:
    state = ScheduleState(
        namespace="flights", name="daily", status="active", incarnation="i", version=1, generation=1, position="p"
    )
    return state.at_next(following)


def test_given_the_union_of_targets_then_each_strategy_knows_each_kind_and_no_other() -> None:
    kinds = {kind_of(target) for target in TARGETS}

    assert set(RULES_BY_KIND) == set(ROUTES_BY_KIND) == set(AUDITS_BY_KIND) == kinds


@pytest.mark.parametrize("target", TARGETS, ids=kind_of)
def test_given_each_kind_then_its_rules_find_nothing_wrong_with_its_example(target: type[Document]) -> None:
    spec = a_schedule(target)
    rules = spec.target_rules

    assert type(rules) is RULES_BY_KIND[kind_of(target)]
    assert fitting_problems(spec) == []
    assert spec.catchup.mode == rules.usual_catch_up
    assert "catchup" not in spec.canonical_json()
    assert (rules.suspend_problem("drop"), rules.backlog_problem("none"), rules.update_problem("restart")) == (
        None,
    ) * 3
    assert rules.mode_of_suspended("drop") == "drop"


@pytest.mark.parametrize("target", TARGETS, ids=kind_of)
def test_given_each_kind_then_an_occurrence_is_found_in_the_ledger_or_on_a_topic(target: type[Document]) -> None:
    spec = a_schedule(target)
    audit, rules = audit_of(spec), spec.target_rules

    assert audit.expects_ledger(spec) is rules.makes_jobs
    assert audit.topic(spec) == rules.topic
    assert audit.expects_ledger(spec) or audit.topic(spec) is not None
    assert (rules.trigger_problem() is None) is rules.makes_jobs
    assert bool(rules.programs) is rules.makes_jobs


@pytest.mark.parametrize("target", TARGETS, ids=kind_of)
def test_given_each_kind_then_its_route_finds_the_next_instant_where_it_keeps_it(target: type[Document]) -> None:
    spec = a_schedule(target)
    route, trigger = route_of(spec), spec.trigger
    assert isinstance(trigger, TimeTrigger)
    ref = "flights/daily"

    stored, outside = route.split_next(a_state(Next(MIDNIGHT)))

    assert (stored.next_nominal is not None) is route.keeps_next_in_state
    assert (stored.next_nominal or outside) == MIDNIGHT
    assert route.following(trigger, ref, stored, MIDNIGHT - 1).found == MIDNIGHT


@pytest.mark.parametrize("target", TARGETS, ids=kind_of)
def test_given_each_kind_then_a_timed_resume_never_counts_from_before_the_promised_end(target: type[Document]) -> None:
    route = route_of(a_schedule(target))

    assert route.resumes_from(MIDNIGHT, MIDNIGHT) == MIDNIGHT
    assert MIDNIGHT <= route.resumes_from(MIDNIGHT, MIDNIGHT + 3_600_000) < MIDNIGHT + 3_600_000
