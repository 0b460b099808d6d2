"""A job that does not run has at least one reason, and removing exactly those that `why` names makes it run.

Random constraints, runs and suspensions on a bench. Each reason has one way out, which is taken for that reason and for nothing else;
with one of them left in place the job waits on, for just that one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.builders import SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import CLOSED, FOR_EVER
from tests.support.tier import examples
from tests.unit.tidegate_core.explain.why.telling import served, the_jobs, told, why_job
from tidegate_core.explain.why.reason import Reason
from tidegate_core.rows.effects import LaunchOrder

PROGRAM: Final[Doc] = {"type": "concurrency", "max": 1, "scope": "program"}
REMEMBERED: Final[Mapping[str, Doc]] = {
    "ran_recently": {"type": "since_last_run", "at_least": "3h", "of": "start"},
    "rate_reached": {"type": "rate", "max": 1, "per": "6h"},
}
"""Constraints that look at the run before: they have to be there when it starts."""
OTHERS: Final[Mapping[str, Doc]] = {
    "window_closed": CLOSED,
    "delayed": {"type": "delay", "after": "40m"},
    "load_high": {"type": "load", "below": 0.5},
}
CONSTRAINTS: Final[Mapping[str, Doc]] = {**REMEMBERED, **OTHERS}
SCOPES: Final[tuple[Doc, ...]] = ({}, {"scope": "group", "group": "calls"})
"""Of the rate."""
OPEN_RUNS: Final = ("own run", "run of another schedule")
STANDING: Final = ("hold", "freeze")
RUN_ID = re.compile(r"\d{4}-[a-z2-7]{26}")
PATIENCE: Final = 40 * SECOND
"""Loads are sampled each 15 s, places in queues are looked after each 10 s."""


class World:
    """A schedule whose second job waits for whatever was drawn."""

    def __init__(
        self, constraints: frozenset[str], open_runs: frozenset[str], mode: str | None, ahead: int, scope: Doc
    ) -> None:
        self.constraints = constraints
        self._scope = scope
        self.bench = ActorHarness()
        self.bench.load = 0.9
        self.bench.behaves = self._behaves
        self._open_runs = open_runs
        self.bench.run(SECOND)
        if "run of another schedule" in open_runs:
            self._apply("other", frozenset())
            self._trigger("other", 0)
        # The run before comes when nothing is in its way: only what remembers it is there.
        alone = "run of another schedule" not in open_runs
        self._apply("nightly", constraints & REMEMBERED.keys(), shared=alone)
        self._trigger("nightly", 0)
        self.bench.run(2 * SECOND)
        self._apply("nightly", constraints)
        for number in range(1, ahead + 2):
            self._trigger("nightly", number)
        self.job_id = str(self.bench.receipts()[f"trigger-nightly-{ahead + 1}"]["id"])
        if mode is not None:
            self.bench.request(a_request("suspend", mode=mode))
        self.bench.run(PATIENCE)

    def _behaves(self, order: LaunchOrder) -> Behaviour:
        of_other = "'name': 'other'" in str(order.context["schedule"])
        lasts = "run of another schedule" if of_other else "own run"
        is_first = len(self.bench.started) < (2 if "run of another schedule" in self._open_runs else 1)
        return FOR_EVER if lasts in self._open_runs and (of_other or is_first) else Behaviour(50, 300)

    def _apply(self, name: str, constraints: frozenset[str], *, shared: bool = True) -> None:
        wanted = [CONSTRAINTS[each] for each in sorted(constraints)] + ([PROGRAM] if shared else [])
        wanted = [{**each, **self._scope} if each["type"] == "rate" else each for each in wanted]
        spec = a_spec(name, every("12h"), constraints=wanted, file="/jobs/shared.py", pending_timeout="48h")
        self.bench.request(an_apply(spec, f"apply-{name}-{len(self.bench.sent)}", on_update="carry"))
        self.bench.run(SECOND)

    def _trigger(self, name: str, number: int) -> None:
        self.bench.request(a_request("trigger", name, request_id=f"trigger-{name}-{number}"))
        self.bench.run(SECOND)

    # -- what the job waits for, and the way out of it -----------------------------------------------------------------

    @property
    def waits(self) -> bool:
        return any(job.id == self.job_id and job.state == "pending_constraint" for job in the_jobs(self.bench))

    def reasons(self) -> list[Reason]:
        explanation = why_job(served(self.bench), self.job_id)
        assert explanation.reasons
        return list(explanation.reasons)

    def remove(self, reasons: list[Reason]) -> None:
        """Takes away what these reasons name, and nothing else."""
        for each in reasons:
            match each.code:
                case "suspended":
                    self.bench.request(a_request("resume", request_id=f"resume-{self.bench.now}"))
                case _ if _is_behind(each):
                    self._cancel_those_ahead()
                case "concurrency":
                    for run_id in RUN_ID.findall(each.text):
                        self.bench.vanish(run_id)
                case "load_unknown":
                    # Nobody asks for a load while something else is in the way.
                    self.constraints -= {"load_high"}
                case _:
                    self.constraints -= {each.code}
        self._apply("nightly", self.constraints)
        self.bench.run(PATIENCE)

    def _cancel_those_ahead(self) -> None:
        waiting = [
            job.id for job in the_jobs(self.bench) if job.name == "nightly" and job.state == "pending_constraint"
        ]
        for job_id in waiting[: waiting.index(self.job_id)]:
            request = {"id": f"cancel-{job_id}", "type": "job.cancel", "namespace": "flights", "job_id": job_id}
            self.bench.request(request)


def _is_behind(reason: Reason) -> bool:
    """Whether it is a job of the same schedule that is in the way, and all that this one waits for."""
    return reason.code == "behind" or "a job that waits goes before it" in reason.text


WORLDS = st.builds(
    World,
    st.frozensets(st.sampled_from(sorted(CONSTRAINTS))),
    st.frozensets(st.sampled_from(OPEN_RUNS)),
    st.sampled_from((None, None, *STANDING)),
    st.sampled_from((0, 0, 1, 3)),
    st.sampled_from(SCOPES),
)


@settings(max_examples=examples(25))
@given(WORLDS)
def test_given_a_job_that_does_not_run_then_removing_exactly_its_blockers_makes_it_run(world: World) -> None:
    if world.waits:
        world.remove(world.reasons())
    assert not world.waits, told(why_job(served(world.bench), world.job_id))


@settings(max_examples=examples(25))
@given(WORLDS, st.integers(0, 10))
@example(World(frozenset(["rate_reached"]), frozenset(), None, 1, {"scope": "group", "group": "calls"}), 0)
def test_given_one_blocker_is_left_then_the_job_waits_on_for_just_that(world: World, which: int) -> None:
    independent = [each for each in world.reasons() if not _is_behind(each)] if world.waits else []
    if not independent:
        return
    left = independent[which % len(independent)]
    world.remove([each for each in world.reasons() if each.code != left.code])
    assert world.waits
    assert {_known(each) for each in world.reasons()} == {_known(left)}
    world.remove(world.reasons())
    assert not world.waits


def _known(reason: Reason) -> str:
    """A load that was not asked for is known once nothing else is in the way."""
    return "load_high" if reason.code == "load_unknown" else reason.code
