"""A resume is one to the audit as well, whatever update was carried amid its generation: what it made of the span holds (SEMANTICS 10, 12)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.request_bench import answer
from tests.support.harness.suspend_bench import a_bench, suspend
from tests.unit.tidegate_core.commands.test_controls_heard_late import definition, nominals, state
from tidegate_core.explain.audit.expected_occurrences import expected_of, generations_of
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import PastGeneration
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS

REF = "flights/nightly"


def apply(bench: ActorHarness, trigger: Doc, how: str | None = None) -> None:
    spec = a_spec(trigger=trigger, overlap="allow", **({} if how is None else {"priority": "high"}))
    more: dict[str, Any] = {} if how is None else {"on_update": how}
    assert answer(bench, an_apply(spec, f"apply {how}", **more))["status"] == "accepted"


def must(bench: ActorHarness) -> list[int]:
    """Returns what the audit wants, of one life."""
    generations = generations_of(state(bench), [from_item(PastGeneration, item) for item in bench.rows("V#")])
    window = Window(0, bench.now)
    expected = expected_of(REF, generations, lambda version: definition(bench, version), NO_SUSPENSIONS, window)
    assert expected.unjudged == []
    return sorted(instant for found in expected.must.values() for instant in found)


@pytest.mark.parametrize("mode", ["drop", "drain", "freeze"])
@pytest.mark.parametrize("ends", [False, True])
def test_given_a_carried_update_behind_a_resume_then_the_audit_wants_no_instant_that_was_suspended(
    mode: str, ends: bool
) -> None:
    """Review finding: the version had changed, so the generation looked like a restart, with which a past `at` counts."""
    bench = a_bench()
    trigger = {"type": "at", "instant": format_instant(bench.now + 5 * MINUTE)}
    apply(bench, trigger)
    suspend(bench, mode)
    bench.run(10 * MINUTE)
    answer(bench, a_request("resume"))
    apply(bench, trigger, "carry")
    bench.run(MINUTE)
    if ends:
        suspend(bench, mode, request_id="again")
    assert (nominals(bench), must(bench)) == ([], [])


@pytest.mark.parametrize("mode", ["drop", "drain", "freeze"])
def test_given_a_carried_update_behind_a_resume_then_the_audit_counts_all_fires_of_the_version(mode: str) -> None:
    """Review finding: as if `max_fires` counted anew."""
    bench = a_bench()
    trigger = {**every("1m"), "max_fires": 4}
    apply(bench, trigger)
    bench.run(3 * MINUTE + SECOND)
    suspend(bench, mode)
    bench.run(5 * MINUTE)
    answer(bench, a_request("resume"))
    apply(bench, trigger, "carry")
    bench.run(5 * MINUTE)
    assert len(nominals(bench)) == 4
    assert must(bench) == nominals(bench)


@pytest.mark.parametrize("how", ["restart", "finish_old"])
def test_given_an_update_behind_a_resume_that_restarts_then_the_audit_counts_anew_and_wants_a_past_instant(
    how: str,
) -> None:
    bench = a_bench()
    at = {"type": "at", "instant": format_instant(bench.now + 5 * MINUTE)}
    apply(bench, at)
    suspend(bench, "drop")
    bench.run(10 * MINUTE)
    answer(bench, a_request("resume"))
    apply(bench, at, how)
    bench.run(20 * SECOND)
    assert len(nominals(bench)) == 1
    assert must(bench) == nominals(bench)
