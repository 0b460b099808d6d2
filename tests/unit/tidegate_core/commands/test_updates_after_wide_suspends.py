"""An update makes up for what a schedule has not made, and a wide suspended span is none of that (SEMANTICS 3.3, 10)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.suspend_bench import suspend
from tests.unit.tidegate_core.commands.test_controls_heard_late import deafly, definition, hear, nominals, state
from tests.unit.tidegate_core.commands.test_scope_commands import ask, control, controls
from tidegate_core.explain.audit.expected_occurrences import Expected, expected_of, generations_of
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.schedule import PastGeneration

REF = "flights/nightly"


@pytest.fixture
def bench() -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(runs_for=100))
    bench.run(SECOND)
    return bench


def a_schedule(trigger: Doc, mode: str = "all", **more: Any) -> Doc:
    catchup = {"max_runs": 100, "after_update": mode}
    return a_spec(trigger=trigger, overlap="allow", **{"catchup": catchup, **more})


def update(bench: ActorHarness, spec: Doc, request_id: str = "update") -> None:
    assert ask(bench, an_apply(spec, request_id), run=0)["status"] == "accepted"


def a_span(bench: ActorHarness, length: int, *scopes: str | None) -> tuple[int, int]:
    """Suspends the schedule's namespace, or the scopes that are named, one after the other, and resumes them so; returns when all that was."""
    for scope in scopes or ("flights",):
        ask(bench, control("suspend", scope))
    bench.run(length)
    for scope in scopes or ("flights",):
        ask(bench, control("resume", scope), run=SECOND)
    spans = [scope.spans[-1] for scope in controls(bench).scopes]
    return min(begun for begun, _ in spans), max(ended or 0 for _, ended in spans)


def instants(period: int, begin: int, end: int) -> list[int]:
    """Of `every`: `begin <= instant < end`."""
    return list(range(-(-begin // period) * period, end, period))


def rows(bench: ActorHarness) -> list[LedgerRow]:
    return sorted((from_item(LedgerRow, item) for item in bench.rows("L#")), key=lambda row: row.nominal)


def audited(bench: ActorHarness) -> Expected:
    past = [from_item(PastGeneration, item) for item in bench.rows("V#")]
    generations = generations_of(state(bench), past)
    window = Window(0, bench.now)
    return expected_of(REF, generations, lambda version: definition(bench, version), controls(bench), window)


@pytest.mark.parametrize("mode", ["all", "last", "coalesce"])
def test_given_an_update_between_a_resume_and_the_first_fire_behind_it_then_nothing_of_the_span_is_made(
    bench: ActorHarness, mode: str
) -> None:
    """Review finding: it began right behind the last occurrence, and that lies before the span."""
    bench.request(an_apply(a_schedule(every("1m"), mode)))
    bench.run(3 * MINUTE - bench.now % MINUTE + SECOND)
    before = nominals(bench)
    a_span(bench, 10 * MINUTE)
    update(bench, a_schedule(every("1m"), mode, priority="high"))
    bench.run(2 * SECOND)
    assert nominals(bench) == before
    bench.run(MINUTE)
    assert nominals(bench) == [*before, bench.now // MINUTE * MINUTE]


@pytest.mark.parametrize(
    ("mode", "scopes"),
    [("all", ()), ("last", ()), ("coalesce", ()), ("all", (None,)), ("all", (None, "flights"))],
)
def test_given_another_trigger_then_what_it_names_on_either_side_of_the_span_is_made_up_for(
    bench: ActorHarness, mode: str, scopes: tuple[str | None, ...]
) -> None:
    """It was never pending, so the suspend ended none of it: it comes due with the update."""
    bench.request(an_apply(a_schedule(every("1h"))))
    bench.run(HOUR - bench.now % HOUR + 20 * MINUTE)
    (fired,) = nominals(bench)
    begun, ended = a_span(bench, 10 * MINUTE, *scopes)
    bench.run(5 * MINUTE)
    updated = bench.now
    update(bench, a_schedule(every("1m"), mode))
    bench.run(20 * SECOND)
    wanted = instants(MINUTE, fired + 1, begun) + instants(MINUTE, ended, updated)
    made = [row for row in rows(bench) if row.nominal > fired]
    if mode == "all":
        assert [row.nominal for row in made] == wanted
    else:
        assert [(row.covered_from, row.nominal, row.covered) for row in made] == [(wanted[0], wanted[-1], len(wanted))]
    assert {row.disposition for row in made} == {"launched"}
    (must,) = audited(bench).must.values()
    assert sorted(must) == [fired, *wanted]


def test_given_a_span_of_another_namespace_then_it_has_nothing_to_do_with_it(bench: ActorHarness) -> None:
    bench.request(an_apply(a_schedule(every("1h"))))
    bench.run(HOUR - bench.now % HOUR + SECOND)
    a_span(bench, 10 * MINUTE, "orders")
    update(bench, a_schedule(every("1m")))
    bench.run(20 * SECOND)
    assert len(nominals(bench)) == 11


@pytest.mark.parametrize("effect", range(1, 13))
def test_given_a_crash_at_any_effect_of_the_update_then_nothing_of_the_span_is_made_and_all_else_once(
    bench: ActorHarness, effect: int
) -> None:
    bench.request(an_apply(a_schedule(every("1h"))))
    bench.run(HOUR - bench.now % HOUR + 5 * MINUTE)
    (fired,) = nominals(bench)
    begun, ended = a_span(bench, 10 * MINUTE)
    bench.run(5 * MINUTE)
    bench.crash_after = bench.effects_outside + effect
    bench.request(an_apply(a_schedule(every("1m")), "update"))
    bench.run(20 * SECOND)
    since = state(bench).activated_at
    assert nominals(bench) == [fired, *instants(MINUTE, fired + 1, begun), *instants(MINUTE, ended, since)]


def test_given_an_update_that_a_shard_applies_before_it_hears_of_the_resume_then_what_came_due_behind_it_is_made_up_for(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_schedule(every("1s"))))
    bench.run(3 * SECOND)
    ask(bench, control("suspend"))
    bench.run(10 * SECOND)
    deafly(bench, control("resume"), 3 * SECOND)
    update(bench, a_schedule(every("1s"), priority="high"))
    hear(bench, control("resume"))
    bench.run(5 * SECOND + SECOND // 2)
    found = nominals(bench)
    ((begun, ended),) = controls(bench).scopes[0].spans
    assert ended is not None
    assert [each for each in found if begun + SECOND <= each < ended] == []
    assert [each for each in found if each >= ended] == instants(SECOND, ended, found[-1] + 1)
    assert len(found) == len(set(found))
    (must,) = audited(bench).must.values()
    assert must <= set(found)


# -- what comes due otherwise ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["none", "all"])
def test_given_a_past_instant_that_lies_in_the_span_then_an_update_has_it_count_as_ever(
    bench: ActorHarness, mode: str
) -> None:
    """SEMANTICS 1.5: it fires with each activation, unless it was made."""
    at = {"type": "at", "instant": format_instant(bench.now + 5 * MINUTE)}
    bench.request(an_apply(a_schedule(at)))
    a_span(bench, 10 * MINUTE)
    bench.run(MINUTE)
    assert nominals(bench) == []
    update(bench, a_schedule(at, mode, priority="high"))
    bench.run(20 * SECOND)
    assert len(nominals(bench)) == 1
    assert len(*audited(bench).must.values()) == 1


def test_given_an_update_that_made_up_for_something_then_the_next_one_knows_nothing_of_it(bench: ActorHarness) -> None:
    bench.request(an_apply(a_schedule(every("1h"))))
    bench.run(HOUR - bench.now % HOUR + 5 * MINUTE)
    begun, _ = a_span(bench, 10 * MINUTE)
    update(bench, a_schedule(every("1m")))
    assert state(bench).missed_by_update
    bench.run(20 * SECOND)
    past = {"type": "at", "instant": format_instant(begun + MINUTE + SECOND)}
    update(bench, a_schedule(past, "none"), "another")
    now = state(bench)
    assert (now.missed_from, now.missed_until, now.missed_as, now.missed_by_update) == (None, None, None, None)
    bench.run(20 * SECOND)
    (row,) = [row for row in rows(bench) if row.version == now.version]
    assert (row.disposition, row.covered) == ("launched", None)


def test_given_a_schedule_that_is_made_after_the_span_then_what_it_is_to_make_up_for_was_suspended_by_nobody(
    bench: ActorHarness,
) -> None:
    """It was not there."""
    start = bench.now // MINUTE * MINUTE
    a_span(bench, 10 * MINUTE)
    catchup = {"max_runs": 100, "on_create": "all"}
    made = bench.now
    bench.request(an_apply(a_schedule(every("1m", start=format_instant(start)), catchup=catchup)))
    bench.run(20 * SECOND)
    assert nominals(bench) == instants(MINUTE, start, made)


def test_given_a_schedule_that_was_suspended_by_itself_all_the_while_then_its_resume_has_the_last_word(
    bench: ActorHarness,
) -> None:
    """Whoever asks for the backlog of its own suspend, once the wide one is over, has been told how much that is."""
    bench.request(an_apply(a_schedule(every("1m"))))
    bench.run(SECOND)
    begun = bench.now
    suspend(bench, "drop")
    a_span(bench, 10 * MINUTE)
    resumed = bench.now
    receipt = ask(bench, a_request("resume", backlog="all"), run=20 * SECOND)
    wanted = instants(MINUTE, begun, resumed)
    assert (receipt["backlog"], nominals(bench)) == (len(wanted), wanted)
