"""Whatever is asked of a schedule, and in whatever order: while it is suspended nothing of it starts or is sent (I7)."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.builders import SECOND, Doc, a_recurring, a_request, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.request_bench import answer
from tests.support.harness.suspend_bench import MODES
from tests.support.tier import examples

SPECS: dict[str, Doc] = {
    "program": a_spec("x", every("1m")),
    "program of events": a_spec("x", on_data(count=2)),
    "program that queues": a_spec("x", every("20s"), overlap="queue", suspend_mode="hold"),
    "message": a_recurring("x", every("10s")),
}
APPLIES = st.tuples(st.sampled_from(sorted(SPECS)), st.sampled_from(["restart", "carry", "finish_old", ""]))
SUSPENDS = st.tuples(st.just("suspend"), st.sampled_from([*MODES, ""]))
RESUMES = st.tuples(st.just("resume"), st.sampled_from(["all", "last", "coalesce", "none", ""]))
OTHERS = st.sampled_from([("trigger", ""), ("delete", ""), ("crash", "")])
STEPS = st.tuples(APPLIES, SUSPENDS, st.lists(st.one_of(APPLIES, SUSPENDS, RESUMES, OTHERS), max_size=8)).map(
    lambda drawn: [*drawn[:2], *drawn[2]]
)
GOES_ON: frozenset[str | None] = frozenset({None, "drain"})


def requested(what: str, how: str, number: int) -> Doc:
    match what:
        case "suspend":
            return a_request("suspend", "x", f"{number}", **({"mode": how} if how else {}))
        case "resume":
            return a_request("resume", "x", f"{number}", **({"backlog": how} if how else {}))
        case "trigger" | "delete":
            return a_request(what, "x", f"{number}")
        case _:
            # Each of them another one, so that it changes something.
            labels = {"number": f"{number}"}
            return {**an_apply({**SPECS[what], "labels": labels}, f"{number}"), **({"on_update": how} if how else {})}


@settings(max_examples=examples(40), deadline=None)
@example([("program", ""), ("suspend", "hold"), ("message", "")])
@given(STEPS)
def test_given_any_requests_then_nothing_starts_and_nothing_is_sent_while_it_is_suspended(
    steps: list[tuple[str, str]],
) -> None:
    bench = ActorHarness(shards=1, behaviour=Behaviour(runs_for=20 * SECOND))
    bench.run(SECOND)
    for number, (what, how) in enumerate(steps):
        if what == "crash":
            bench.crash()
            bench.run(SECOND)
        else:
            answer(bench, requested(what, how, number))
        state = bench.state_of("x")
        mode = (
            None if state is None or state.status == "active" else "drop" if state.status == "deleted" else state.mode
        )
        begun = (len(bench.started), len(bench.on("out")))
        for part in range(3):
            bench.event(an_event(f"{number}.{part}"))
            bench.run(30 * SECOND)
        if mode not in GOES_ON:
            assert (len(bench.started), len(bench.on("out"))) == begun
        if mode == "drain":
            assert len(bench.on("out")) == begun[1]
