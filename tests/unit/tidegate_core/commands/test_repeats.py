"""Repeats of requests that are answered: they get the same answer, and keep nobody waiting who has none yet.

Found by the simulation (seed 28005735): behind an outage nine of ten requests in an inbox were repeats, each of them had the store read once
or twice, and in a slow store they came as fast as that. What nobody had answered yet stood behind them for minutes, and so did events.
"""

from __future__ import annotations

import json

import pytest

from tests.support.builders import DAY, MINUTE, REQUESTS_ID, SECOND, Doc, a_request, a_spec, an_apply, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.request_bench import answer
from tests.unit.tidegate_core.commands.test_listened_in_vain import NO_FILE, an_inspection, an_update, heard
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.effects import Inspected, Invalid
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.receipt import RECEIPT_DAYS
from tidegate_core.rows.store_operations import Put

REPEATS = 60
APPLY = an_apply(a_spec(trigger=on_data()), "it")
BEHIND = a_request("delete", request_id="behind")


def a_bench() -> ActorHarness:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    return bench


def lay(bench: ActorHarness, *documents: Doc, at: int | None = None) -> None:
    """In the inbox, as another holder has read them: in this order."""
    for number, document in enumerate(documents):
        origin = Position(at or bench.now, REQUESTS_ID, 1, number).text()
        row = InboxRow(namespace="flights", name="nightly", kind="Q", origin=origin, body=json.dumps(document))
        bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1})])
    bench.give(Woken(0))


def receipts_of(bench: ActorHarness, request_id: str) -> list[Doc]:
    documents = [sent.document for sent in bench.on("tidegate.receipts")]
    return [each for each in documents if each["request_id"] == request_id]


@pytest.mark.parametrize("by", ["its owner", "a predecessor"])
def test_given_many_repeats_of_what_was_answered_then_who_stands_behind_them_is_answered_soon(by: str) -> None:
    bench = a_bench()
    first = answer(bench, APPLY, run=SECOND)
    if by == "a predecessor":
        bench.crash()
        bench.run(SECOND)
    bench.store_answers_after = 200
    lay(bench, *[APPLY] * REPEATS, BEHIND)
    bench.run(5 * SECOND)
    assert bench.status_of("behind") == "accepted"
    assert receipts_of(bench, "it") == [first] * (REPEATS + 1)
    assert bench.rows("I#") == []


def test_given_many_repeats_of_what_nobody_has_answered_then_the_first_is_applied_and_the_others_cost_nothing() -> None:
    bench = a_bench()
    bench.store_answers_after = 200
    lay(bench, *[APPLY] * REPEATS, BEHIND)
    bench.run(10 * SECOND)
    assert bench.status_of("behind") == "accepted"
    receipts = receipts_of(bench, "it")
    assert len(receipts) == REPEATS
    assert all(each == receipts[0] for each in receipts)
    assert len(bench.commits("control")) == 2


def test_given_many_repeats_then_the_driver_has_its_turns_between_them() -> None:
    """A step of seconds would keep the loop from heartbeats, and from all other holdings."""
    bench = a_bench()
    answer(bench, APPLY, run=SECOND)
    lay(bench, *[APPLY] * REPEATS)
    assert len(receipts_of(bench, "it")) < REPEATS // 10
    bench.run(SECOND)
    assert len(receipts_of(bench, "it")) == REPEATS + 1


def owed() -> ActorHarness:
    """The answer is stored, and what was written for the request to listen could not be removed."""
    bench = a_bench()
    bench.crash_at(a_commit("raise_index"))
    bench.answer_with(a_commit("raise_index"), Invalid("too large"))
    bench.answer_with(an_inspection, Inspected())
    bench.answer_with(an_inspection, NO_FILE)
    bench.request(an_update())
    bench.run(2 * SECOND)
    assert heard(bench)
    assert bench.status_of("update") is None
    return bench


def test_given_an_answer_behind_which_something_is_owed_still_then_a_repeat_sees_to_it() -> None:
    bench = owed()
    bench.request(an_update())
    bench.run(2 * SECOND)
    assert bench.status_of("update") == "rejected"
    assert not heard(bench)


def test_given_a_successor_that_meets_the_id_in_another_request_first_then_its_repeat_sees_to_what_is_owed() -> None:
    bench = owed()
    bench.crash()
    lay(bench, a_request("resume", request_id="update"), at=bench.now - MINUTE)
    bench.run(2 * SECOND)
    assert [each["status"] for each in receipts_of(bench, "update")] == ["rejected", "rejected"]
    assert not heard(bench)


def test_given_an_id_that_is_used_again_when_its_answer_is_gone_then_it_is_a_first_request() -> None:
    """The owner may know it still: a shard with little to do forgets nothing for months."""
    bench = a_bench()
    assert answer(bench, APPLY, run=SECOND)["status"] == "accepted"
    bench.now += (RECEIPT_DAYS + 1) * DAY
    bench.store.expire(bench.now)
    bench.run(SECOND)
    assert answer(bench, APPLY, run=SECOND)["status"] == "unchanged"
    assert bench.lives == 1
