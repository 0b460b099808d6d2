"""`why` is asked at any moment: after each transaction of an update or a delete, and while a job moves on between two reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.support.builders import (
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.unit.tidegate_core.explain.why.telling import CLUSTER, served, the_jobs, told, why, why_job
from tidegate_api.reads import why as reads
from tidegate_api.reads.why_snapshot import facts_of
from tidegate_core.explain.why.reason import CODES
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.language.values.instants import format_instant

MINUTES: Final[Doc] = {"type": "cron", "expression": "* * * * *", "zone": "UTC"}
PAIRED: Final[Doc] = {
    "type": "all_of",
    "correlate": "data_partition",
    "triggers": [on_data("a"), on_data("b")],
}
GATHERING: Final = 9
"""Evidence of so many keys ends in several transactions."""


def asked_after_each_transaction(bench: ActorHarness, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Has every question asked after each transaction from now on; returns the codes, as they come."""
    codes: list[str] = []
    transact = bench.store.transact

    def ask() -> None:
        for at in (None, format_instant(bench.now - SECOND), format_instant(bench.now + SECOND)):
            found = reads.explain_schedule(bench.store, CLUSTER, "flights", "nightly", at, bench.now)
            if found is not None:
                assert found.reasons
                codes.extend(each.code for each in found.reasons)
        for row in [*bench.rows("J#"), *bench.rows("E#"), *bench.rows("R#")]:
            if "id" in row and not row.get("job"):
                wanted = str(row["id"])
                of_job = reads.explain_job(bench.store, CLUSTER, shard_of_run(wanted), wanted, bench.now)
                assert of_job is not None
                assert of_job.reasons
                codes.extend(each.code for each in of_job.reasons)

    def transact_and_ask(*given: Any) -> Any:
        result = transact(*given)
        ask()
        return result

    monkeypatch.setattr(bench.store, "transact", transact_and_ask)
    return codes


def updated(trigger: Doc, **more: Any) -> Callable[[ActorHarness], None]:
    return lambda bench: bench.request(an_apply(a_spec(trigger=trigger), "update", **more))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (updated(all_of(on_data("a"), on_data("b"), on_data("c")), on_update="restart"), "waiting_for_events"),
        (updated(MINUTES, on_update="restart"), "waiting_for_events"),
        (updated(all_of(on_data("a"), on_data("b"), on_data("c")), on_update="finish_old"), "waiting_for_events"),
        (lambda bench: bench.request(a_request("delete")), "cancelled/schedule_deleted"),
    ],
    ids=["more leaves", "a time trigger", "finish_old", "delete"],
)
def test_given_evidence_that_ends_in_several_transactions_then_each_moment_has_its_answer(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[ActorHarness], None], code: str
) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=PAIRED)))
    for number in range(GATHERING):
        bench.event(an_event(f"d{number}", "a"))
    bench.run(SECOND)
    codes = asked_after_each_transaction(bench, monkeypatch)
    change(bench)
    bench.run(5 * SECOND)
    assert code in codes
    assert set(codes) <= set(CODES)


@pytest.mark.parametrize(
    ("meanwhile", "code"),
    [
        (lambda bench: bench.run(5 * MINUTE), "launched"),
        (lambda bench: bench.request(a_request("suspend", "nightly", mode="drop")), "cancelled/suspended"),
    ],
    ids=["launched", "suspended"],
)
def test_given_a_job_that_moves_on_between_two_reads_then_it_is_read_anew(
    monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[ActorHarness], None], code: str
) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=MINUTES, constraints=[{"type": "delay", "after": "5m"}])))
    bench.run(2 * MINUTE)
    job = the_jobs(bench)[0]
    calls = [meanwhile]

    def late(*given: Any) -> Any:
        while calls:
            calls.pop()(bench)
        return facts_of(*given)

    monkeypatch.setattr(reads, "facts_of", late)
    assert [each.code for each in why_job(bench, job.id).reasons] == [code]


def test_given_more_versions_than_one_page_holds_then_the_present_one_is_known() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    for number in range(30):
        bench.request(an_apply(a_spec("nightly", every("1h"), ["x" * 8_000] * 5 + [str(number)]), f"a{number}"))
        bench.run(SECOND)
    assert [each.code for each in why(served(bench)).reasons] == ["not_due"]
    assert [each.code for each in why(bench, bench.now + 10 * SECOND).reasons] != ["not_there_yet"]


def test_given_a_deleted_upstream_then_what_is_missing_does_not_name_it() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("10m"))))
    bench.request(an_apply(a_spec(trigger={"type": "any_of", "triggers": [on_run_of("up"), on_data("a", 3)]})))
    bench.run(SECOND)
    bench.event(an_event("d1", "a"))
    bench.request(a_request("delete", "up"))
    bench.run(SECOND)
    (waiting,) = [each for each in told(why(served(bench))) if each.startswith("waiting_for_events")]
    assert waiting.endswith("missing: 2 of 3 data partitions of a")
