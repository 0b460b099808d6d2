"""The audit of a recurring message whose schedule was ended while a fire of it could not be delivered."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_recurring, a_request, an_apply, every
from tests.support.harness.effect_matchers import a_produce
from tests.unit.tidegate_node.audit.audited_bench import AuditedBench, kinds
from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS
from tidegate_core.rows.effects import NotProduced

MISSING = NotProduced("refused", "UNKNOWN_TOPIC_OR_PART")
NO_ANSWER = NotProduced("unavailable", "_MSG_TIMED_OUT")
ENDS = pytest.mark.parametrize("kind", ["suspend", "update", "delete"])


@pytest.fixture
def bench() -> AuditedBench:
    return AuditedBench()


def ending(kind: str) -> Doc:
    update = an_apply(a_recurring(trigger=every("10h"), payload="new"), "update-ping")
    return update if kind == "update" else a_request(kind, "ping")


@ENDS
@pytest.mark.parametrize("failure", [MISSING, NO_ANSWER], ids=["the topic is missing", "no answer"])
@pytest.mark.parametrize("is_in_flight", [True, False], ids=["in flight", "between two attempts"])
def test_given_a_fire_that_its_receipt_says_was_withdrawn_then_nothing_differs(
    bench: AuditedBench, kind: str, failure: NotProduced, is_in_flight: bool
) -> None:
    bench.does(an_apply(a_recurring(trigger=every("1m"), payload="old")))
    if is_in_flight:
        bench.hold_back(a_produce("out"), told=failure)
    else:
        bench.answer_with(a_produce("out"), failure, times=1_000)
    bench.run(MINUTE)
    bench.does(ending(kind), then=WIRE_PATIENCE_MS + SECOND)
    assert bench.receipts()[f"{kind}-ping"]["discarded"]["messages"] == 1
    bench.as_usual()
    bench.run(5 * MINUTE)
    found = bench.audit()
    assert (kinds(found), bench.on("out")) == ([], [])


@ENDS
def test_given_a_fire_that_arrived_without_an_answer_as_its_schedule_ended_then_nothing_differs(
    bench: AuditedBench, kind: str
) -> None:
    bench.does(an_apply(a_recurring(trigger=every("1m"), payload="old")))
    bench.hold_back(a_produce("out"), answer_only=True)
    bench.run(MINUTE)
    bench.does(ending(kind), then=WIRE_PATIENCE_MS + SECOND)
    bench.as_usual()
    bench.run(5 * MINUTE)
    found = bench.audit()
    assert (kinds(found), len(bench.on("out"))) == ([], 1)
