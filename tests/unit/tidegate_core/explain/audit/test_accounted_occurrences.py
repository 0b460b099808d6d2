"""Which instants an entry accounts for where jobs were merged."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tidegate_core.explain.audit.accounted_occurrences import Entry, accounted


def an_entry(job: str, at: int, fate: str = "launched", into: str | None = None, **more: Any) -> Entry:
    return Entry(
        job_id=job,
        ref="sim/bell",
        incarnation="01",
        version=1,
        trigger="time",
        nominal=at,
        fate=fate,
        into=into,
        **more,
    )


def spanned(entry: Entry) -> range:
    return range(entry.begins, entry.nominal + 1)


def instants(*entries: Entry, suspended: Collection[int] = ()) -> list[int]:
    return sorted(at for _, at in accounted(entries, spanned, lambda at: at not in suspended))


def test_given_merged_jobs_that_ended_by_themselves_then_what_others_were_merged_into_does_not_account_for_them() -> (
    None
):
    """Simulation, seed 20400727: a merged job was cancelled in the middle of what another one spans, part of which may have been
    suspended. The audit told of two entries for its instants.
    """
    beside = [an_entry("a", 3, "coalesced", "b"), an_entry("b", 4, "cancelled", covered=2, covered_from=3)]
    merged = an_entry("c", 2, "coalesced", "d", covered=2, covered_from=1)
    rest = an_entry("d", 8, covered=6, covered_from=1)
    assert instants(*beside, merged, rest, suspended=(6, 7)) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_given_a_merged_job_that_says_to_stand_for_more_than_is_left_then_an_instant_is_there_twice() -> None:
    beside = [an_entry("a", 3, "coalesced", "b"), an_entry("b", 4, "cancelled", covered=2, covered_from=3)]
    merged = an_entry("c", 2, "coalesced", "d", covered=2, covered_from=1)
    assert instants(*beside, merged, an_entry("d", 8, covered=7, covered_from=1)) == [1, 2, 3, 4, 4, 5, 6, 7, 8]


def test_given_a_span_that_was_suspended_between_what_was_merged_then_nobody_accounts_for_it() -> None:
    merged = an_entry("a", 2, "coalesced", "b", covered=2, covered_from=1)
    rest = an_entry("b", 6, covered=4, covered_from=1)
    assert instants(merged, rest, suspended=(3, 4)) == [1, 2, 5, 6]
