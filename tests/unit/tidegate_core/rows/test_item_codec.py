"""Records to items and back, and what a newer version's attributes do to an older reader."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW, a_job, a_run, a_schedule, some_evidence
from tidegate_core import rows
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import STORE_ATTRIBUTES, from_item, to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.message import MessageName, public_id
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import PastGeneration, ScheduleState
from tidegate_core.rows.store_operations import Key

KEY = Key("SH#0000", "X")


def record_types() -> list[Any]:
    modules = [
        importlib.import_module(each.name) for each in pkgutil.iter_modules(rows.__path__, "tidegate_core.rows.")
    ]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return [each for each in found if dataclasses.is_dataclass(each) and hasattr(each, "key")]


def test_given_the_records_then_all_of_them_are_looked_at() -> None:
    assert len(record_types()) >= 16


@pytest.mark.parametrize("record_type", record_types(), ids=lambda each: each.__name__)
def test_given_a_record_then_no_field_is_the_stores_own(record_type: Any) -> None:
    names = {field.name for field in dataclasses.fields(record_type)}
    assert names & (STORE_ATTRIBUTES - {"expires_at"}) == set()


@pytest.mark.parametrize("record", [a_job(), a_run(), some_evidence((0, 3))], ids=["job", "run", "evidence"])
def test_given_a_record_then_it_comes_back_as_it_was(record: Any) -> None:
    item = to_item(record, KEY)
    assert from_item(type(record), {**item, "rev": 7, "w": "tok"}) == record
    assert (item["pk"], item["sk"]) == KEY[:2]


def test_given_a_state_and_the_generation_that_it_ends_then_both_come_back_as_they_were() -> None:
    state = a_schedule(
        missed_from=1,
        missed_until=2,
        missed_as="all",
        missed_by_update=True,
        backlog_through=NOW,
        cut_through=NOW,
        unmade_through=NOW,
    )
    past = PastGeneration.of(state, NOW, NOW + 1, fired=True, interval=None)
    assert past.missed_by_update
    assert from_item(ScheduleState, to_item(state, KEY)) == state
    assert from_item(PastGeneration, to_item(past, KEY)) == past
    items = [
        to_item(each, KEY) for each in (a_schedule(), PastGeneration.of(a_schedule(), 1, 2, fired=True, interval=None))
    ]
    optional = {"missed_by_update", "backlog_through", "cut_through", "unmade_through"}
    assert [item.keys() & optional for item in items] == [set(), set()]


def test_given_absent_values_then_they_are_not_stored() -> None:
    item = to_item(a_run(), KEY)
    assert "driver" not in item
    assert "limits" not in item
    assert item["cancel_requested"] is False


def test_given_attributes_of_a_newer_version_then_they_are_ignored() -> None:
    assert from_item(Job, {**to_item(a_job(), KEY), "colour": "blue"}) == a_job()


@given(
    counts=st.lists(st.integers(0, 10**6), min_size=1, max_size=50),
    correlation=st.text(max_size=50),
    deadline=st.none() | st.integers(0, 10**13 - 1),
    job=st.booleans(),
)
def test_given_any_evidence_then_it_comes_back_as_it_was(
    counts: list[int], correlation: str, deadline: int | None, job: bool
) -> None:
    evidence = some_evidence(counts, correlation=correlation, deadline=deadline, job=job)
    assert from_item(Evidence, to_item(evidence, KEY)) == evidence


@given(limits=st.lists(st.text(max_size=20), max_size=5), outputs=st.none() | st.text())
def test_given_any_run_then_it_comes_back_as_it_was(limits: list[str], outputs: str | None) -> None:
    run = a_run(limits=tuple(limits), outputs=outputs)
    assert from_item(Run, to_item(run, KEY)) == run


def test_given_message_names_then_keys_and_request_ids_never_meet() -> None:
    named = {MessageName.of_key("n", "x").id, MessageName.of_request("n", "x").id, MessageName.of_key("nx", "").id}
    assert len(named) == 3


def test_given_a_public_id_then_a_replacement_has_another_and_a_repeat_the_same() -> None:
    keyed, named = MessageName.of_key("n", "k"), MessageName.of_request("n", "r")
    assert public_id(3, keyed, "v1") != public_id(3, keyed, "v2")
    assert public_id(3, keyed, "v1") == public_id(3, MessageName.of_key("n", "k"), "v1")
    assert public_id(3, named, "v1") == f"0003-{named.id}"
