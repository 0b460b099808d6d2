"""A corpus of schedules, one file for each theme: what is wrong is told with its way out, and what is right is read back.

`corpus/invalid` has what people write by mistake, with all that is told about it, word by word; `corpus/valid` has what is unusual and
meant so. Both are YAML as users write it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.builders import Doc
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import check_schedule
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.language.values.problems import InvalidInput, Problem

CORPUS = Path(__file__).parent / "corpus"
NOW = parse_instant("2026-11-20T22:00:00Z")
SCHEDULE: Doc = {
    "kind": "schedule",
    "namespace": "flights",
    "name": "a",
    "target": {"type": "program", "program": {"type": "python", "file": "jobs/a.py"}},
    "trigger": {"type": "cron", "expression": "0 6 * * *", "zone": "Europe/Rome"},
}
"""What an entry's fields take the place of."""
SAYS_WHAT_IS_ALLOWED = re.compile(
    r"\bat (least|most)\b|\bone of\b|\bhas to be\b|\bplanned for \d|\bsuch as\b|\bfrom \d|\bbetween\b|\bneither\b|\bnot (in|a range within) \d"
    r"|\bis not (a number, a name|a whole number|a name:|a topic|custom\.)|\bhas more than \d+ characters\b|\bdialect \w+ has\b"
    r"|; write |; end it with |\blonger than\b|\blarger than\b|\boutside of \d|\bmust be\b|\bday is out of range\b|\bnot 1 to \d+"
)
"""A problem without a hint says in its own words what would be right."""


def documents(folder: str) -> list[Any]:
    return [
        pytest.param(entry, id=f"{path.stem}-{number}")
        for path in sorted((CORPUS / folder).glob("*.yaml"))
        for number, entry in enumerate(yaml.safe_load_all(path.read_text(encoding="utf-8")), start=1)
    ]


INVALID = documents("invalid")
VALID = documents("valid")


def problems_of(given: Doc) -> tuple[Problem, ...]:
    try:
        return check_schedule(parse_schedule({**SCHEDULE, **given}), now=NOW)
    except InvalidInput as refusal:
        return refusal.problems


def read_again(document: Any) -> ScheduleSpec:
    """Returns what `schedule get --spec` printed, applied again."""
    return parse_schedule(yaml.safe_load(yaml.safe_dump(document, allow_unicode=True)))


def test_given_the_corpus_then_there_are_at_least_300_of_each() -> None:
    assert len(INVALID) >= 300
    assert len(VALID) >= 300


@pytest.mark.parametrize("entry", INVALID)
def test_given_an_invalid_schedule_then_field_problem_and_way_out_are_told(entry: Doc) -> None:
    told = problems_of(entry["given"])

    assert told == tuple(Problem(each["field"], each["problem"], each.get("way_out", "")) for each in entry["told"])
    for problem in told:
        assert problem.hint or SAYS_WHAT_IS_ALLOWED.search(problem.problem), f"no way out: {problem}"


@pytest.mark.parametrize("entry", VALID)
def test_given_a_valid_schedule_then_its_stored_form_is_read_back_with_the_same_hash(entry: Doc) -> None:
    spec = parse_schedule({**SCHEDULE, **entry["given"]})
    stored = spec.canonical_json()

    assert check_schedule(spec, now=NOW) == ()
    assert ScheduleSpec.from_canonical(stored) == spec
    for again in (parse_schedule(json.loads(stored)), read_again(json.loads(stored))):
        assert again == spec
        assert again.canonical_json() == stored
        assert again.spec_hash() == spec.spec_hash()


@pytest.mark.parametrize("entry", [each for each in VALID if "equal" in each.values[0]])
def test_given_two_ways_to_write_one_schedule_then_the_hash_is_the_same(entry: Doc) -> None:
    one, other = (parse_schedule({**SCHEDULE, **entry[way]}) for way in ("given", "equal"))

    assert one.spec_hash() == other.spec_hash(), entry["about"]


@pytest.mark.parametrize(
    ("given", "version"),
    [
        *(({"overlap": word}, "0.5") for word in ("keep_first", "strict", "kill_running")),
        *(({"trigger": {"type": word}}, "0.5") for word in ("then", "absent")),
        *(
            ({"trigger": {"type": "data_partitions", "dataset": "d", word: "x"}}, "0.5")
            for word in ("prefer", "absent", "late")
        ),
        ({"trigger": {"type": "data_partitions", "dataset": "d", "late": "rerun"}}, "0.5"),
        *(({word: 2}, "0.5") for word in ("weight", "tenant_weight", "slack", "amendments", "late")),
        *(({"constraints": [{"type": "time_window", word: "p95"}]}, "0.5") for word in ("fit", "slack", "calendar")),
        ({"constraints": [{"type": "calendar", "name": "it"}]}, "0.5"),
        ({"kind": "calendar"}, "0.5"),
        ({"trigger": {"type": "cron", "expression": "0 6 * * *", "exclude": [{"type": "calendar"}]}}, "0.5"),
    ],
)
def test_given_what_issue_5_leaves_to_a_later_version_then_it_is_refused_with_that_version(
    given: Doc, version: str
) -> None:
    assert any(f"planned for {version}" in problem.problem for problem in problems_of(given))
