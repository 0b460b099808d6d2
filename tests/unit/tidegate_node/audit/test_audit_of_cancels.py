"""The audit compares what cancels were told with what became of their messages."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_cancel, a_send
from tests.support.harness.effect_matchers import a_produce
from tests.unit.tidegate_node.audit.audited_bench import AuditedBench, kinds
from tidegate_core.rows.effects import NotProduced

MISSING = NotProduced("refused", "UNKNOWN_TOPIC_OR_PART")
WHICH = pytest.mark.parametrize(("sent", "cancel"), [({}, {"message_id": "m-1"}), ({"key": "k"}, {"key": "k"})])


@pytest.fixture
def bench() -> AuditedBench:
    return AuditedBench()


def cancelled_on_its_way(bench: AuditedBench, sent: Doc, cancel: Doc) -> None:
    """The topic of the message is not there, as the broker says once the cancel was answered `too_late`."""
    bench.hold_back(a_produce("out"), told=MISSING)
    bench.does(a_send("m-1", after="1s", **sent), then=2 * SECOND)
    bench.does(a_cancel(**cancel))
    bench.as_usual()
    bench.run(2 * MINUTE)


@WHICH
def test_given_a_cancel_that_was_too_late_and_a_message_that_is_delivered_later_then_nothing_differs(
    bench: AuditedBench, sent: Doc, cancel: Doc
) -> None:
    cancelled_on_its_way(bench, sent, cancel)
    found = bench.audit()
    assert (kinds(found), found.counts["seen"]) == ([], 1)


@WHICH
def test_given_a_cancel_that_was_too_late_and_a_message_that_is_withdrawn_then_the_audit_says_so(
    bench: AuditedBench, sent: Doc, cancel: Doc
) -> None:
    cancelled_on_its_way(bench, sent, cancel)
    (guard,) = bench.rows("G#", "main")
    del guard["late"]
    bench.put(guard, "main")
    (difference,) = bench.audit().differences
    assert difference.kind == "answer_differs"
    assert "c-1: too_late" in difference.expected
    assert difference.found == "withdrawn"


@WHICH
def test_given_a_cancel_that_was_answered_cancelled_and_a_record_on_the_topic_then_the_audit_says_so(
    bench: AuditedBench, sent: Doc, cancel: Doc
) -> None:
    cancelled_on_its_way(bench, sent, cancel)
    (guard,), (receipt,) = bench.rows("G#", "main"), bench.rows("RQ#", "main")
    del guard["late"]
    bench.put(guard, "main")
    bench.put(receipt, "main", body=str(receipt["body"]).replace("too_late", "cancelled"))
    (difference,) = bench.audit().differences
    assert (difference.kind, difference.found) == ("answer_differs", "1 records")
    assert "c-1: cancelled" in difference.expected
