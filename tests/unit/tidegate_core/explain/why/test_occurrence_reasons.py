"""Instants beside the golden stories: what stands for others, what nobody asked for, and local times that come twice."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import FOR_EVER, a_bench
from tests.unit.tidegate_core.explain.why.stories_of_ends import lived
from tests.unit.tidegate_core.explain.why.stories_of_instants import ROME, applied_at
from tests.unit.tidegate_core.explain.why.stories_of_jobs import QUICK
from tests.unit.tidegate_core.explain.why.stories_of_schedules import applied
from tests.unit.tidegate_core.explain.why.telling import served, why
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.problems import InvalidInput
from tidegate_core.rows.store_operations import Delete, Key


def codes(bench: ActorHarness, at: str) -> list[str]:
    return [each.code for each in why(served(bench), at).reasons]


def test_given_an_outage_that_one_entry_stands_for_then_only_instants_that_the_trigger_names_are_in_it() -> None:
    bench = lived(every("1h"), behaviour=QUICK, catchup={"mode": "none"})
    bench.away(4 * HOUR)
    bench.run(SECOND)
    assert codes(bench, "2025-11-13T04:00:00Z") == ["skipped/outage"]
    assert codes(bench, "2025-11-13T04:01:00Z") == ["not_named"]


def test_given_an_outage_that_one_open_job_stands_for_then_each_of_its_instants_is_answered_by_that() -> None:
    bench = lived(every("1h"), catchup={"mode": "coalesce"})
    bench.away(4 * HOUR)
    bench.run(SECOND)
    assert codes(bench, "2025-11-13T04:00:00Z") == ["running"]


def test_given_an_instant_that_is_served_and_due_in_a_suspended_span_then_the_span_is_told() -> None:
    bench = applied(every("1m"))
    bench.request(a_request("suspend"))
    bench.run(5 * MINUTE)
    bench.request(a_request("resume"))
    bench.run(MINUTE)
    (reason,) = why(served(bench), "2025-11-13T02:15:00Z").reasons
    assert reason.code == "suspended"
    assert reason.values == {"since": "2025-11-13T02:13:22Z", "to": "2025-11-13T02:18:22Z"}
    assert codes(bench, "2025-11-13T02:19:00Z") == ["launched"]


def test_given_a_suspension_with_an_end_then_what_is_due_behind_it_is_still_to_come() -> None:
    bench = applied(every("1h"))
    bench.request(a_request("suspend", until="2025-11-13T04:30:00Z"))
    bench.run(SECOND)
    assert codes(bench, "2025-11-13T04:00:00Z") == ["suspended"]
    assert codes(bench, "2025-11-13T05:00:00Z") == ["not_due"]


def test_given_a_union_then_the_spec_that_would_name_the_instant_says_why_not() -> None:
    exclude = [{"type": "dates", "first": "2025-11-15"}]
    trigger = {"type": "times", "specs": [every("1h"), {**ROME, "exclude": exclude}]}
    assert codes(applied(trigger), "2025-11-15T01:30:00Z") == ["excluded"]
    assert codes(applied(trigger), "2025-11-15T01:31:00Z") == ["not_named"]


def test_given_both_passes_then_a_repeated_local_time_has_two_answers() -> None:
    bench = applied_at("2026-10-25T00:00:00Z", {**ROME, "dst_overlap": "both"})
    bench.run(2 * HOUR)
    explanation = why(served(bench), "2026-10-25T02:30")
    assert [each.code for each in explanation.reasons] == ["launched", "launched"]
    assert explanation.local == "Sun 2026-10-25 02:30:00 Europe/Rome"


def test_given_an_hour_field_with_a_star_then_a_local_time_that_does_not_exist_is_shifted_nowhere() -> None:
    bench = applied_at("2026-03-29T00:00:00Z", {**ROME, "expression": "30 * * * *"})
    bench.run(2 * HOUR)
    assert codes(bench, "2026-03-29T02:30") == ["dst_gap"]
    assert codes(bench, "2026-03-29T02:31") == ["not_named"]


NEW_YORK: Doc = {"type": "cron", "expression": "0 6 * * *", "zone": "America/New_York"}
CALENDAR: Doc = {"type": "every", "period": {"days": 1}, "at": "02:30", "zone": "Europe/Rome"}


@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in a union"])
@pytest.mark.parametrize("trigger", [ROME, CALENDAR, {**ROME, "dst_gap": "skip"}, {**ROME, "expression": "30 * * * *"}])
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"exclude": [{"type": "dates", "first": "2026-03-29", "zone": "Europe/Rome"}]}, "excluded"),
        ({"end": "2026-03-20T00:00:00Z"}, "after_end"),
        ({"start": "2026-04-20T00:00:00Z"}, "before_start"),
    ],
)
def test_given_a_local_time_in_a_gap_that_is_left_out_then_that_is_why(
    trigger: Doc, fields: Doc, code: str, wrapped: bool
) -> None:
    """Review finding: it was said to be shifted and due, or skipped by `dst_gap`."""
    beside = {"type": "times", "specs": [trigger, {**CALENDAR, "at": "12:00"}], **fields}
    bench = applied_at("2026-03-18T00:00:00Z", beside if wrapped else {**trigger, **fields})
    assert codes(bench, "2026-03-29T02:30") == [code]


def test_given_a_jump_of_the_zone_behind_the_end_then_the_end_is_why() -> None:
    trigger = {**ROME, "zone": "Pacific/Apia", "end": "2011-12-29T00:00:00Z"}
    assert codes(applied_at("2011-12-20T09:00:00Z", trigger), "2011-12-30T02:30") == ["after_end"]


def test_given_a_gap_then_what_is_left_out_behind_it_says_nothing_of_a_local_time_in_it() -> None:
    left_out = [{"type": "cron", "expression": "0 3 * * *"}]
    bench = applied_at("2026-03-28T00:00:00Z", {**ROME, "expression": "30 2,3 * * *", "exclude": left_out})
    assert codes(bench, "2026-03-29T02:30") == ["dst_shift", "not_due"]
    bench = applied_at("2026-03-28T00:00:00Z", {**ROME, "expression": "0 3,4 * * *", "exclude": left_out})
    assert codes(bench, "2026-03-29T02:30") == ["not_named"]
    assert codes(bench, "2026-03-29T03:00") == ["excluded"]


def test_given_an_instant_that_stands_for_excluded_times_of_a_gap_alone_then_they_are_why() -> None:
    trigger = {**ROME, "exclude": [{"type": "cron", "expression": "30 2 * * sun"}]}
    bench = applied_at("2026-03-29T00:00:00Z", trigger)
    bench.run(2 * HOUR)
    (reason,) = why(served(bench), "2026-03-29T01:00:00Z").reasons
    assert reason.code == "excluded"
    assert reason.text == "exclude leaves out all local times in the gap for which 2026-03-29T01:00:00Z would stand"


def test_given_two_specs_that_name_a_time_in_a_gap_then_the_one_that_is_left_out_does_not_answer_for_the_other() -> (
    None
):
    left_out = {**ROME, "exclude": [{"type": "dates", "first": "2026-03-29"}]}
    bench = applied_at("2026-03-28T00:00:00Z", {"type": "times", "specs": [left_out, ROME]})
    assert codes(bench, "2026-03-29T02:30") == ["dst_shift", "not_due"]


@pytest.mark.parametrize(
    ("specs", "at", "local", "code"),
    [
        pytest.param([ROME], "2026-03-05T02:30", "Thu 2026-03-05 02:30:00 Europe/Rome", "not_due", id="one zone"),
        pytest.param(
            [ROME, every("7m")], "2026-03-05T02:32", "Thu 2026-03-05 02:32:00 Europe/Rome", "not_named", id="one clock"
        ),
        pytest.param(
            [ROME],
            "2026-03-29T02:30",
            "Sun 2026-03-29 02:30:00 Europe/Rome, which does not exist",
            "dst_shift",
            id="in a gap",
        ),
        pytest.param(
            [NEW_YORK, ROME],
            "2026-03-29T02:30",
            "Sun 2026-03-29 02:30:00 Europe/Rome, which does not exist",
            "dst_shift",
            id="whose gap",
        ),
        pytest.param(
            [ROME, NEW_YORK],
            "2026-03-05T06:00",
            "Thu 2026-03-05 06:00:00 America/New_York",
            "not_due",
            id="who names it",
        ),
        pytest.param(
            [ROME, {**NEW_YORK, "end": "2026-03-04T00:00:00Z"}],
            "2026-03-05T06:00",
            "Thu 2026-03-05 06:00:00 America/New_York",
            "after_end",
            id="who named it",
        ),
        pytest.param([ROME, NEW_YORK], "2026-03-05T07:00", "Thu 2026-03-05 07:00:00 UTC", "not_named", id="nobody"),
        pytest.param([every("1h")], "2026-03-05T07:00", "Thu 2026-03-05 07:00:00 UTC", "not_due", id="no clock"),
    ],
)
def test_given_a_union_then_a_local_time_is_meant_on_the_clock_of_the_spec_that_names_it(
    specs: list[Doc], at: str, local: str, code: str
) -> None:
    """Review finding: it was read in UTC, or by the clock that chanced to name the instant of that."""
    explanation = why(served(applied_at("2026-03-01T00:00:00Z", {"type": "times", "specs": specs})), at)
    assert explanation.local == local
    assert explanation.reasons[0].code == code


def test_given_a_composite_then_a_local_time_is_meant_on_its_leafs_clock() -> None:
    trigger = {"type": "all_of", "triggers": [ROME, {"type": "event", "name": "custom.ready"}]}
    bench = applied_at("2026-03-01T00:00:00Z", trigger)
    assert why(served(bench), "2026-03-05T02:30").local == "Thu 2026-03-05 02:30:00 Europe/Rome"


@pytest.mark.parametrize("trigger", [every("1h"), {**CALENDAR, "period": {"days": 2}}])
def test_given_periods_that_start_later_then_that_is_why(trigger: Doc) -> None:
    """Review finding: of what counts from its `start` on nothing before that was looked at. Two days count from there."""
    bench = applied_at("2026-03-01T00:00:00Z", {**trigger, "start": "2026-03-10T00:00:00Z"})
    at = "2026-03-06T02:00:00Z" if "at" not in trigger else "2026-03-06T02:30"
    assert codes(bench, at) == ["before_start"]
    assert codes(bench, at.replace("06T02", "07T03")) == ["not_named" if "at" in trigger else "before_start"]


def test_given_an_earlier_version_then_its_rules_answer_for_its_time() -> None:
    bench = applied(every("1h"))
    bench.run(2 * HOUR)
    bench.request(an_apply(a_spec(trigger=ROME), "update"))
    bench.run(SECOND)
    assert codes(bench, "2025-11-13T03:00:00Z") == ["launched"]
    assert codes(bench, "2025-11-13T05:00:00Z") == ["not_named"]


def test_given_a_name_that_was_made_again_then_what_was_before_is_another_schedules() -> None:
    bench = a_bench(FOR_EVER)
    for number in range(2):
        bench.request(an_apply(a_spec(trigger=every("1h")), f"apply-{number}"))
        bench.run(10 * MINUTE)
        if number == 0:
            bench.request(a_request("delete"))
            bench.run(SECOND)
    assert codes(bench, "2025-11-13T02:20:00Z") == ["not_there_yet"]


def test_given_a_catch_up_of_the_creation_then_what_stands_for_an_earlier_instant_is_told() -> None:
    """Made at 02:13; asked for 23:00 it was `not_there_yet`, although a job stood for it."""
    bench = applied(every("1h", start="2025-11-12T20:00:00Z"), catchup={"on_create": "coalesce"})
    bench.run(SECOND)
    assert codes(bench, "2025-11-13T00:00:00Z") == codes(bench, "2025-11-13T02:00:00Z") != ["not_there_yet"]
    assert codes(bench, "2025-11-13T00:30:00Z") == ["not_there_yet"]


def test_given_a_chain_of_merged_jobs_then_the_first_and_what_stands_for_all_are_told() -> None:
    bench = lived(every("1m"), behaviour=Behaviour(runs_for=130 * MINUTE), overlap="coalesce")
    bench.run(300 * MINUTE)
    first = next(entry[2] for entry in bench.ledger() if entry[0].startswith("coalesced"))
    assert codes(bench, format_instant(first)) == ["coalesced/overlap", "launched"]


def test_given_max_fires_then_what_comes_behind_the_last_one_is_not_due() -> None:
    bench = applied(every("1h", max_fires=3))
    bench.run(HOUR)
    assert codes(bench, "2025-11-13T05:00:00Z") == ["not_due"]
    assert codes(bench, "2025-11-13T06:00:00Z") == ["max_fires_reached"]


def test_given_max_fires_then_an_instant_that_was_made_is_forgotten_with_its_entry() -> None:
    bench = lived(every("1h", max_fires=2), behaviour=QUICK)
    bench.run(4 * HOUR)
    made = next(entry[2] for entry in bench.ledger())
    bench.store.write([Delete(Key(str(row["pk"]), str(row["sk"]), "history")) for row in bench.rows("L#")])
    bench.now += 100 * 24 * HOUR
    assert codes(bench, format_instant(made)) == ["forgotten"]


def test_given_a_local_time_before_1970_by_utc_then_it_is_refused() -> None:
    with pytest.raises(InvalidInput) as refusal:
        why(served(applied(ROME)), "1970-01-01T00:30")
    assert "ask about a later time" in str(refusal.value)


@pytest.mark.parametrize("at", ["02:30", "2025-02-30T02:30", "2025-11-13T02:30:00.5", "tomorrow", ""])
def test_given_what_is_neither_an_instant_nor_a_local_time_then_it_says_what_to_write(at: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        why(served(applied()), at)
    (problem,) = refusal.value.problems
    assert problem.field == "at"


@pytest.mark.parametrize(("at", "is_another_form"), [("9999-01-01T00:00:00Z", False), ("yesterday", True)])
def test_given_an_instant_that_cannot_be_then_no_other_form_of_it_is_offered(at: str, is_another_form: bool) -> None:
    with pytest.raises(InvalidInput) as refusal:
        why(served(applied(every("1h"))), at)
    assert ("nor a local time" in str(refusal.value)) == is_another_form
