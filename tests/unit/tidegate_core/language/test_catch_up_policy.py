"""The words of catch-up and overlap: defaults, and what fits to which trigger and target (SEMANTICS 3 and 4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import Doc, a_recurring, a_spec, every, on_data, parsed_spec
from tidegate_core.language.definitions.catch_up_policy import CatchUpPolicy, catch_up_warning
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.problems import InvalidInput

FUTURE = "2030-01-01T00:00:00Z"


def problems(document: Doc) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidInput) as told:
        parse_schedule(document)
    return [(each.field, each.problem, each.hint) for each in told.value.problems]


def test_given_nothing_then_programs_make_up_for_all_of_a_week_and_messages_for_the_last() -> None:
    assert parsed_spec().catchup == CatchUpPolicy.model_validate({"mode": "all", "window": "7d", "max_runs": 24})
    assert parse_schedule(a_recurring()).catchup.mode == "last"
    assert parse_schedule({**a_recurring(), "catchup": {"mode": "all"}}).catchup.mode == "all"


def test_given_the_stored_form_then_it_says_the_same_and_an_older_one_has_the_defaults() -> None:
    spec = parsed_spec(overlap="keep_latest", priority="high", catchup={"mode": "coalesce", "window": "1h"})
    assert ScheduleSpec.from_canonical(spec.canonical_json()) == spec
    older = '{"kind":"schedule","name":"a","namespace":"b","target":{"type":"program","program":{"type":"python","file":"/x"}},'
    loaded = ScheduleSpec.from_canonical(
        older + '"trigger":{"type":"every","period":"1m"},"overlap":"queue","priority":"medium"}'
    )
    assert (loaded.max_pending, loaded.on_overflow, loaded.catchup) == (100, "coalesce", CatchUpPolicy())


@pytest.mark.parametrize(
    ("document", "field", "problem", "hint"),
    [
        (a_spec(overlap="coalesce", trigger=on_data()), "overlap", "counts events", "use queue"),
        (a_spec(overlap="skip", max_pending=5), "max_pending", "no effect with overlap: skip", "queue"),
        (a_spec(overlap="coalesce", on_overflow="reject"), "on_overflow", "no effect", "queue"),
        (a_spec(max_pending=0), "max_pending", "at least 1", ""),
        (a_spec(priority="urgent"), "priority", "not one of", ""),
        (a_spec(overlap="keep_lastest"), "overlap", "not one of", "keep_latest?"),
        (a_spec(overlap="strict"), "overlap", "planned for", ""),
        (a_spec(trigger=on_data(), catchup={"mode": "last"}), "catchup", "counts events", "leave it out"),
        (a_spec(catchup={"mode": "some"}), "catchup.mode", "not one of", ""),
        (a_spec(catchup={"window": "0s"}), "catchup.window", "above 0", ""),
        (a_spec(catchup={"max_runs": 0}), "catchup.max_runs", "at least 1", ""),
        (a_spec(catchup={"after_outage": "all"}), "catchup.after_outage", "not a field", "mode"),
        (a_spec(after_pause="all"), "after_pause", "not a field", "into catchup"),
        (a_spec(catchup={"on_create": "all"}), "catchup.on_create", "has no start", "a start"),
        ({**a_recurring(), "catchup": {"mode": "coalesce"}}, "catchup.mode", "for programs", "use last"),
        ({**a_recurring(), "catchup": {"max_runs": 3}}, "catchup.max_runs", "planned for", "leave it out"),
        ({**a_recurring(), "overlap": "queue"}, "overlap", "with a message as target", "leave it out"),
    ],
)
def test_given_what_does_not_fit_then_field_problem_and_way_out_are_told(
    document: Doc, field: str, problem: str, hint: str
) -> None:
    (told,) = problems(document)
    assert told[0] == field
    assert problem in told[1]
    assert hint in told[2]


@pytest.mark.parametrize("more", [{"overlap": "SKIP", "catchup": {"mode": "Last"}}, {"priority": "HIGHEST"}])
def test_given_other_case_then_words_are_understood(more: dict[str, Any]) -> None:
    spec = parsed_spec(**more)
    assert (spec.overlap, spec.priority) in {("skip", "medium"), ("queue", "highest")}


def test_given_skip_and_all_then_there_is_a_warning() -> None:
    """SEMANTICS 3.6: the second and later ones would be skipped."""
    told = catch_up_warning(parsed_spec(overlap="skip"))
    assert told is not None
    assert told.field == "catchup.mode"
    for fine in ({"overlap": "queue"}, {"overlap": "skip", "catchup": {"mode": "last"}}):
        assert catch_up_warning(parsed_spec(trigger=every("1m"), **fine)) is None
    assert catch_up_warning(parsed_spec(trigger=on_data(), overlap="skip")) is None
