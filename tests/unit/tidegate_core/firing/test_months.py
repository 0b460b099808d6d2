"""A store that forgets what its TTL says, and owners that come months later, change no answer and lose no event."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import SECOND, Doc, a_request, a_spec, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.recorded_effects import manifest_text
from tests.support.tier import examples

STEPS = ["apply", "change", "delete", "suspend", "resume", "trigger", "event", "event", "event"]


def a_document(step: str, number: int) -> Doc:
    if step == "apply":
        return an_apply(a_spec(trigger=on_data(count=2)), f"{number}")
    if step == "change":
        return an_apply(a_spec(trigger=on_data(count=2), args=[f"{number}"]), f"{number}")
    return a_request(step, request_id=f"{number}")


def lived(steps: list[tuple[str, int]], *, with_months: bool) -> tuple[list[tuple[str, ...]], list[str], list[object]]:
    """Returns what was answered, what each program was told of, and what was counted and is open at the end."""
    bench = ActorHarness()
    bench.run(SECOND)
    for number, (step, months) in enumerate(steps):
        if step == "event":
            bench.event(an_event(f"d{number}", event_id=f"e{number}"))
        else:
            bench.request(a_document(step, number))
        bench.run(5 * SECOND)
        if with_months and months:
            bench.months(months)
            bench.run(5 * SECOND)
    assert bench.notices("decision_failed") == []
    answers = bench.receipts().values()
    said = [tuple(str(answer[name]) for name in ("request_id", "status", "version")) for answer in answers]
    told = [manifest_text(order) for order in bench.started]
    return said, told, [row["counts"] for row in bench.rows("E#")]


@settings(max_examples=examples(30), deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from([0, 0, 1, 2, 14])), max_size=10))
def test_given_months_between_any_steps_of_a_name_s_life_then_it_goes_as_it_goes_within_minutes(
    steps: list[tuple[str, int]],
) -> None:
    life = [("apply", 0), *steps]
    assert lived(life, with_months=True) == lived(life, with_months=False)
