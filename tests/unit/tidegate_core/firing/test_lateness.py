"""What lateness counts from: when something was due, which is no earlier than somebody asked for it."""

from __future__ import annotations

from tests.support.builders import DAY, HOUR, MINUTE, NOW, SECOND, a_send, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.shard_bench import a_bench
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Produce, ProduceMany, Submit


def deliveries(bench: ActorHarness) -> list[Produce]:
    records = [*bench.all_asked(Produce)]
    records += [record for each in bench.all_asked(ProduceMany) for record in each.records]
    return [record for record in records if record.guarded]


def test_given_a_message_that_was_past_dated_then_it_is_due_with_its_request() -> None:
    """A message of a year ago was a year late, and an alert on lateness rang."""
    bench = a_bench()
    bench.request(a_send(deliver_at=format_instant(NOW - 365 * DAY)))
    bench.run(MINUTE)
    (record,) = deliveries(bench)
    assert record.due is not None
    assert NOW <= record.due <= NOW + SECOND


def test_given_a_message_for_later_then_it_is_due_at_its_time() -> None:
    bench = a_bench()
    bench.request(a_send(deliver_at=format_instant(NOW + 30 * SECOND)))
    bench.run(MINUTE)
    assert [record.due for record in deliveries(bench)] == [NOW + 30 * SECOND]


def test_given_a_schedule_of_an_instant_in_the_past_then_its_run_is_due_with_the_schedule() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger={"type": "at", "instant": format_instant(NOW - 2 * HOUR)})))
    bench.run(MINUTE)
    (submit,) = bench.all_asked(Submit)
    assert submit.order.due is not None
    assert NOW <= submit.order.due <= NOW + SECOND


def test_given_an_instant_that_was_missed_in_an_outage_then_it_is_due_at_its_nominal() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.away(2 * HOUR)
    bench.run(MINUTE)
    assert bench.all_asked(Submit)[0].order.due == NOW // HOUR * HOUR + HOUR
