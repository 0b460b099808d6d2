"""A schedule that others wait for is deleted: OR goes on without it, AND ends, and nobody ends for anything else (CD-017)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.simulation.checks.request_history import SKEW_MS

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.checks.request_history import Step
    from tests.simulation.users.schedule_users import Life
    from tests.simulation.world.observations import UpstreamSeen


def check_upstreams(case: Case) -> Iterator[str]:
    by_name = {life.name: life for life in case.lives}
    for life in case.lives:
        upstreams = upstreams_of(life.definition.trigger)
        for seen in case.record.upstreams_of(life.name):
            if not any(step.sent <= seen.at for step in _deletes(case, by_name.get(seen.upstream))):
                yield f"I1: {life.name} goes without {seen.upstream}, which nobody had deleted"
            if seen.ended != _ends(life.definition.trigger):
                yield f"I1: {life.name} {'ended' if seen.ended else 'goes on'} without {seen.upstream}"
        for upstream in sorted(upstreams):
            for step in _deletes(case, by_name.get(upstream)):
                if case.world.at_rest and _listens_on(case, life, step) and not _heard(case, life, upstream, step):
                    yield f"I1: {life.name} still waits for {upstream}, deleted by {step.asked.id}"


def upstreams_of(trigger: dict[str, Any]) -> set[str]:
    leaves = trigger.get("triggers", [trigger])
    return {leaf["schedule"] for leaf in leaves if leaf["type"] == "run_status"}


def _ends(trigger: dict[str, Any]) -> bool:
    """Each composite of these worlds that waits for runs is an alternative, and has another branch."""
    return bool(trigger["type"] != "any_of")


def _deletes(case: Case, life: Life | None) -> list[Step]:
    steps = [] if life is None else case.steps(life)
    return [step for step in steps if step.kind == "delete" and step.moves]


def _listens_on(case: Case, life: Life, step: Step) -> bool:
    """Whether it listened as the other one was deleted, and has gone on listening ever since."""
    return any(
        segment.end is None and segment.begin.done + SKEW_MS < step.sent - SKEW_MS for segment in case.segments(life)
    )


def _heard(case: Case, life: Life, upstream: str, step: Step) -> bool:
    seen: list[UpstreamSeen] = case.record.upstreams_of(life.name)
    return any(each.upstream == upstream for each in seen)
