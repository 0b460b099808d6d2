"""Which instants an entry of the ledger stands for, by the simulation's own arithmetic."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tests.simulation.checks.fires import accounted
from tidegate_core.rows.ledger import LedgerRow

SECONDLY = {"type": "every", "period": "1s"}


def an_entry(job: str, at: int, disposition: str = "launched", detail: str | None = None, **more: Any) -> LedgerRow:
    return LedgerRow(
        namespace="sim",
        name="bell",
        incarnation="01",
        version=1,
        job_id=job,
        trigger="time",
        nominal=at * 1_000,
        disposition=disposition,
        reason="",
        at=0,
        detail=detail,
        **more,
    )


def instants(*rows: LedgerRow, suspended: Collection[int] = ()) -> list[int]:
    found = accounted(lambda _: SECONDLY, list(rows), lambda at: at // 1_000 not in suspended)
    return sorted(at // 1_000 for _, at in found)


def test_given_one_of_an_outage_that_ended_by_itself_then_what_the_others_were_merged_into_does_not_stand_for_it() -> (
    None
):
    """Seed 836644: one of those that an outage left was cancelled, then a resume merged the rest around it."""
    merged = [
        an_entry("a", 2, "coalesced", "into d", covered=2, covered_from=1_000),
        an_entry("c", 4, "coalesced", "into d", covered=1, covered_from=4_000),
    ]
    alone = an_entry("b", 3, "cancelled", covered=1, covered_from=3_000)
    rest = an_entry("d", 6, covered=5, covered_from=1_000)
    assert instants(*merged, alone, rest) == [1, 2, 3, 4, 5, 6]


def test_given_an_instant_that_was_made_beside_what_was_merged_then_it_is_there_twice() -> None:
    merged = an_entry("a", 2, "coalesced", "into c", covered=2, covered_from=1_000)
    again = an_entry("b", 2)
    assert instants(merged, again, an_entry("c", 3, covered=3, covered_from=1_000)) == [1, 2, 2, 3]


def test_given_a_suspended_span_between_what_was_merged_then_nobody_stands_for_it() -> None:
    """Seed 840064: an outage on both sides of a freeze; what it left was merged at the resume."""
    merged = an_entry("a", 2, "coalesced", "into b", covered=2, covered_from=1_000)
    rest = an_entry("b", 6, covered=4, covered_from=1_000)
    assert instants(merged, rest, suspended=(3, 4)) == [1, 2, 5, 6]
    assert instants(merged, rest) == [1, 2, 5, 6], "as many as it says: else what was lost would seem to be there"


def test_given_merged_jobs_that_ended_by_themselves_then_what_others_were_merged_into_does_not_stand_for_them() -> None:
    """Seed 20400727: a merged job was cancelled in the middle of what another one spans, of which a span may have been suspended."""
    beside = [an_entry("a", 3, "coalesced", "into b"), an_entry("b", 4, "cancelled", covered=2, covered_from=3_000)]
    merged = an_entry("c", 2, "coalesced", "into d", covered=2, covered_from=1_000)
    rest = an_entry("d", 8, covered=6, covered_from=1_000)
    assert instants(*beside, merged, rest, suspended=(6, 7)) == [1, 2, 3, 4, 5, 6, 7, 8]
    one_more = an_entry("d", 8, covered=7, covered_from=1_000)
    assert instants(*beside, merged, one_more) == [1, 2, 3, 4, 4, 5, 6, 7, 8], "as many as it says: one is there twice"
