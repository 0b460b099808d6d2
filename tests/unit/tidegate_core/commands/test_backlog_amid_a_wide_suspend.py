"""A schedule that is resumed, or created, while all others are suspended with it: what is to be made up for comes behind that (SEMANTICS 3.5, 10)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.request_bench import answer
from tests.support.harness.suspend_bench import a_bench
from tests.unit.tidegate_core.commands.test_controls_heard_late import definition, state
from tests.unit.tidegate_core.commands.test_scope_commands import controls
from tidegate_core.explain.audit.expected_occurrences import expected_of, generations_of
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import PastGeneration

PERIOD = 10 * MINUTE


def widely(kind: str, namespace: str | None = "flights") -> Doc:
    scope: Doc = {"scope": "system"} if namespace is None else {"scope": "namespace", "namespace": namespace}
    return {"id": f"{kind}-{namespace}", "type": f"control.{kind}", **scope}


def applied(bench: ActorHarness, **catch_up: Any) -> None:
    bench.request(an_apply(a_spec(trigger=every("10m"), overlap="allow", catchup=catch_up)))
    bench.run(SECOND)


def launched(bench: ActorHarness) -> list[int]:
    assert {what for what, *_ in bench.ledger()} == {"launched"}
    return [nominal for _, _, nominal, _ in bench.ledger()]


def must(bench: ActorHarness) -> list[int]:
    """Returns what the audit wants."""
    generations = generations_of(state(bench), [from_item(PastGeneration, item) for item in bench.rows("V#")])
    texts = [definition(bench, each.version) for each in generations]
    expected = expected_of(
        "flights/nightly", generations, lambda version: texts[version - 1], controls(bench), Window(0, bench.now)
    )
    assert expected.unjudged == []
    return sorted(instant for found in expected.must.values() for instant in found)


def instants(begin: int, end: int) -> list[int]:
    return list(range(-(-begin // PERIOD) * PERIOD, end, PERIOD))


@pytest.mark.parametrize("mode", ["drop", "drain", "freeze"])
@pytest.mark.parametrize("by", ["resume", "until"])
def test_given_a_resume_with_a_backlog_amid_a_wide_suspend_then_it_is_made_up_for_behind_that(
    mode: str, by: str
) -> None:
    """Found in review: the receipt counted the backlog, and nothing was ever made of it, or told."""
    bench = a_bench()
    applied(bench, after_pause="all")
    begun = bench.now
    end = begun + 90 * MINUTE + 7 * SECOND
    answer(bench, a_request("suspend", mode=mode, **({"until": format_instant(end)} if by == "until" else {})))
    bench.run(HOUR)
    answer(bench, widely("suspend"), run=end - bench.now)
    if by == "resume":
        assert answer(bench, a_request("resume"))["backlog"] == len(instants(begun, end))
    bench.run(20 * MINUTE)
    assert bench.started == []
    answer(bench, widely("resume"), run=SECOND)
    back = bench.now
    bench.run(30 * MINUTE)
    assert launched(bench) == must(bench) == [*instants(begun, end), *instants(back, bench.now)]


def test_given_two_wide_suspends_then_the_backlog_waits_for_the_end_of_both() -> None:
    bench = a_bench()
    applied(bench)
    begun = bench.now
    answer(bench, a_request("suspend"), run=HOUR)
    answer(bench, widely("suspend"), run=SECOND)
    answer(bench, a_request("resume", backlog="all"), run=SECOND)
    resumed = bench.now
    answer(bench, widely("suspend", None), run=SECOND)
    answer(bench, widely("resume"), run=20 * MINUTE)
    assert bench.started == []
    bench.crash()
    answer(bench, widely("resume", None), run=5 * MINUTE)
    assert launched(bench) == must(bench) == instants(begun, resumed)


def test_given_a_backlog_that_is_not_made_yet_when_a_wide_suspend_begins_then_it_is_told_that_it_was_cancelled() -> (
    None
):
    bench = a_bench()
    applied(bench)
    begun = bench.now
    answer(bench, a_request("suspend"), run=HOUR)
    bench.request(a_request("resume", backlog="all"))
    resumed = bench.now
    answer(bench, widely("suspend"), run=MINUTE)
    answer(bench, widely("resume"), run=MINUTE)
    assert [nominal for _, _, nominal, _ in bench.ledger()] == instants(begun, resumed)


def test_given_a_start_in_the_past_and_a_creation_amid_a_wide_suspend_then_it_is_made_up_for_behind_that() -> None:
    bench = a_bench()
    answer(bench, widely("suspend"), run=MINUTE)
    begin = bench.now - HOUR
    trigger = every("10m", start=format_instant(begin))
    answer(bench, an_apply(a_spec(trigger=trigger, overlap="allow", catchup={"on_create": "all"})), run=SECOND)
    created = bench.now
    answer(bench, widely("resume"), run=5 * MINUTE)
    assert launched(bench) == instants(begin, created)
