"""What is read late, from another topic partition, becomes what it would have become in time (SEMANTICS 6.2, 6.3).

Of what the other topic partition brought alone nothing has been concluded yet: what has fired, or was given up, stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.support.builders import HOUR, MINUTE, NOW, SECOND, Doc, all_of, on_data
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.evidence_bench import a_desk, count, entries, evidence, jobs
from tests.support.tier import examples
from tests.unit.tidegate_core.evidence.test_accumulator import A, B, C, came, days, expire, told
from tidegate_core.evidence.expiry import ExpireEvidence
from tidegate_core.language.triggers.composite.composite import CompositeTrigger
from tidegate_core.language.triggers.latches import Latches
from tidegate_core.rows.evidence import Evidence, EvidenceChunk
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.events.evidence_log import FORGET, merged

# -- what meets, and what does not -------------------------------------------------------------------------------------


def test_given_half_of_a_count_that_had_ceased_to_hold_then_it_completes_no_later_half() -> None:
    """Behind an outage of 5 h it fired on a pair that came 4 h apart, when the other topic partition was read first."""
    desk = a_desk(all_of({**on_data("a", 2), "ttl": "1h"}, B))
    count(desk, came(1, 1, "b", 4 * HOUR), came(2, 0, "p2", 4 * HOUR + 59 * MINUTE))
    count(desk, came(3, 0, "p1", HOUR))
    assert (jobs(desk), evidence(desk)) == ([], {"": (1, 1)})
    assert told(desk) == ["expired/evidence_expired"]
    assert expire(desk) == 5 * HOUR + 59 * MINUTE


def test_given_late_halves_of_one_pair_then_they_fire_though_both_had_ceased_to_hold_before_what_is_here() -> None:
    desk = a_desk(all_of({**A, "ttl": "1h"}, {**B, "ttl": "1h"}))
    count(desk, came(1, 0, "x", 5 * HOUR))
    count(desk, came(2, 0, "y"), came(3, 1, "z", 30 * MINUTE))
    assert (days(desk), evidence(desk), told(desk)) == (["yz"], {"": (1, 0)}, [])


def test_given_a_late_event_that_what_is_here_would_have_completed_in_its_time_then_it_fires() -> None:
    """It would hold no more when the last came, and did when the first came."""
    desk = a_desk(all_of({**A, "ttl": "1h"}, {**on_data("b"), "ttl": "1h"}))
    count(desk, came(1, 1, "x", 4 * HOUR), came(2, 1, "y", 4 * HOUR + 40 * MINUTE))
    count(desk, came(3, 0, "z", 3 * HOUR + 30 * MINUTE))
    assert sorted("".join(days(desk))) == ["x", "y", "z"]
    assert told(desk) == []


def test_given_a_late_event_whose_time_was_up_amid_what_is_here_then_that_stays() -> None:
    desk = a_desk(all_of(A, B, C, timeout="1h"))
    count(desk, came(1, 0, "x", 4 * HOUR), came(2, 2, "y", 4 * HOUR + 50 * MINUTE))
    count(desk, came(3, 1, "z", 3 * HOUR + 45 * MINUTE))
    assert (evidence(desk), told(desk)) == ({"": (1, 0, 1)}, ["expired/trigger_timeout"])
    assert expire(desk) == 5 * HOUR


def test_given_late_events_some_of_which_were_forgotten_then_what_is_left_joins_without_them() -> None:
    """What joined brought along what had been forgotten in it, and that was counted again."""
    desk = a_desk(all_of({**on_data("a", 2), "ttl": "1h"}, B, C))
    count(desk, came(1, 0, "x", 5 * HOUR))
    count(desk, came(2, 0, "y"), came(3, 1, "z", 30 * MINUTE))
    assert (evidence(desk), jobs(desk)) == ({"": (1, 1, 0)}, [])
    (held,) = desk.records(Evidence, "E#")
    assert [entry["partition"] for entry in merged(entries(desk, held.id))] == ["x", "z"]


def test_given_max_wait_then_it_counts_from_the_first_that_came_and_not_the_first_that_was_read() -> None:
    desk = a_desk({**on_data("a", 100), "max_wait": "2h"})
    count(desk, came(1, 0, "x", HOUR))
    count(desk, came(2, 0, "y"))
    (held,) = desk.records(Evidence, "E#")
    assert held.first_at == NOW
    assert expire(desk) == 2 * HOUR
    assert sorted("".join(days(desk))) == ["x", "y"]


def test_given_max_wait_that_was_over_before_what_is_here_came_then_the_late_one_is_a_job_of_its_own() -> None:
    desk = a_desk({**on_data("a", 100), "max_wait": "2h"})
    count(desk, came(1, 0, "x", 5 * HOUR))
    count(desk, came(2, 0, "y"))
    assert (days(desk), evidence(desk)) == (["y"], {"": (1,)})
    assert expire(desk) == 7 * HOUR


def test_given_max_settle_then_it_counts_from_when_enough_had_come() -> None:
    desk = a_desk({**on_data("a", 2), "settle": "30s", "max_settle": "1m"})
    count(desk, came(1, 0, "x", 20 * SECOND))
    count(desk, came(2, 0, "y"))
    count(desk, *(came(3 + n, 0, f"z{n}", (40 + 20 * n) * SECOND) for n in range(2)))
    assert expire(desk) == 80 * SECOND


def test_given_one_that_is_taken_back_late_then_it_is_gone_also_beside_what_had_ended() -> None:
    desk = a_desk(all_of({**A, "kinds": ["created", "deleted"]}, B, C, timeout="1h"))
    count(desk, came(1, 0, "x", 4 * HOUR), came(2, 1, "y", 4 * HOUR + 50 * MINUTE))
    count(desk, came(3, 2, "z"), came(4, 0, "x", 4 * HOUR + MINUTE, id="e", kind="deleted"))
    assert evidence(desk) == {"": (0, 1, 0)}


KINDS = ["created", "deleted"]


def test_given_one_that_is_taken_back_behind_what_a_late_event_ended_then_it_is_gone_all_the_same() -> None:
    """It stayed, and a job fired with what had been deleted (review)."""
    desk = a_desk(all_of({**A, "kinds": KINDS}, B, C, timeout="1h"))
    count(desk, came(1, 0, "x", 4 * HOUR), came(2, 1, "y", 4 * HOUR + 50 * MINUTE))
    deleted = came(4, 0, "x", 4 * HOUR + 30 * MINUTE, id="e", kind="deleted")
    count(desk, came(3, 2, "z", 3 * HOUR + 20 * MINUTE), deleted)
    assert evidence(desk) == {"": (0, 1, 0)}
    count(desk, came(5, 2, "w", 4 * HOUR + 55 * MINUTE))
    assert jobs(desk) == []


def test_given_a_late_event_that_was_taken_back_then_what_is_left_counts_from_its_own_time() -> None:
    desk = a_desk({**on_data("a", 3), "kinds": KINDS, "ttl": "1h"})
    count(desk, came(1, 0, "h", 4 * HOUR + 30 * MINUTE))
    count(desk, came(2, 0, "p", 4 * HOUR), came(3, 0, "p", 4 * HOUR + 10 * MINUTE, id="e", kind="deleted"))
    assert expire(desk) == 5 * HOUR + 30 * MINUTE


def test_given_a_pair_that_met_in_time_then_it_fires_though_half_of_it_was_announced_again() -> None:
    """Of what was replaced only the later time was known (review)."""
    desk = a_desk(all_of({**on_data("a", 2), "ttl": "1h"}, B))
    again = came(3, 0, "x", 4 * HOUR + 20 * MINUTE, id="e2")
    count(desk, came(1, 1, "b", 3 * HOUR + 40 * MINUTE), came(2, 0, "x", 4 * HOUR), again)
    count(desk, came(4, 0, "y", 3 * HOUR + 15 * MINUTE))
    assert ["".join(sorted(each)) for each in days(desk)] == ["bxy"]
    assert told(desk) == []


def test_given_one_that_comes_and_goes_again_and_again_then_no_late_piece_fires_with_what_was_deleted() -> None:
    """The second delete was only held against what is here, and not against the piece in which it came (review)."""
    rows = [
        came(1, 0, "x", 4 * HOUR, id="e1"),
        came(3, 0, "x", 4 * HOUR + 5 * MINUTE, id="g1", kind="deleted"),
        came(4, 1, "z", 4 * HOUR + 10 * MINUTE),
        came(5, 0, "x", 4 * HOUR + 11 * MINUTE, id="e2"),
        came(6, 0, "x", 4 * HOUR + 12 * MINUTE, id="g2", kind="deleted"),
        came(7, 2, "w", 4 * HOUR + 13 * MINUTE),
        came(2, 0, "y", 4 * HOUR + 50 * MINUTE, id="e3"),
    ]
    desk = a_desk(all_of({**on_data("a"), "kinds": KINDS}, {**B, "ttl": "10m"}, {**C, "ttl": "10m"}))
    count(desk, rows[0], rows[-1])
    count(desk, *rows[1:-1])
    assert (days(desk), evidence(desk)) == ([], {"": (1, 0, 0)})


def test_given_one_that_was_announced_anew_then_another_ones_late_delete_does_not_make_it_younger() -> None:
    leaf = {"type": "data_size", "dataset": "a", "rows": 100, "kinds": ["created", "replaced", "deleted"], "ttl": "1h"}
    desk = a_desk(all_of(leaf, B))
    count(desk, came(1, 0, "x", 4 * HOUR, id="1", kind="created", rows=10))
    count(desk, came(2, 0, "p", 4 * HOUR + 2 * MINUTE, id="2", kind="created", rows=10))
    count(desk, came(4, 0, "x", 4 * HOUR + 10 * MINUTE, id="4", kind="replaced", rows=12))
    count(desk, came(3, 0, "p", 4 * HOUR + 5 * MINUTE, id="3", kind="deleted", rows=0))
    assert expire(desk) == 5 * HOUR


def test_given_a_log_in_which_a_late_event_joined_what_came_after_its_time_then_it_is_read_and_goes_on() -> None:
    """As nodes of before wrote it: with a deadline that counts from what was read first."""
    desk = a_desk(all_of({**on_data("a", 3), "ttl": "1h"}, B))
    with patch.object(Latches, "ends_amid", return_value=False):
        count(desk, came(1, 1, "b", 4 * HOUR), came(2, 0, "x", 4 * HOUR + 50 * MINUTE), came(3, 0, "y", HOUR))
    (stored,) = desk.records(Evidence, "E#")
    row = next(row for row in desk.records(TimerRow, "T#") if row.kind == "E")
    deadline = NOW + 5 * HOUR + 50 * MINUTE
    desk.lay(replace(stored, deadline=deadline), replace(row, at=deadline))
    desk.decide(ExpireEvidence(replace(row, at=deadline)), deadline)
    assert (evidence(desk), jobs(desk)) == ({"": (0, 1)}, [])
    count(desk, *(came(4 + number, 0, name, 6 * HOUR) for number, name in enumerate("uvw")))
    assert sorted("".join(days(desk))) == ["b", "u", "v", "w"]


# -- any of it ---------------------------------------------------------------------------------------------------------

TRIGGERS: dict[str, Doc] = {
    "all_of": all_of({**on_data("a", 2), "ttl": "1h"}, B),
    "timeout": all_of({**A, "ttl": "40m"}, on_data("b", 2), C, timeout="1h"),
    "partial": all_of(on_data("a", 2), B, C, timeout="1h", on_timeout="partial"),
    "wait": {"type": "at_least", "k": 2, "triggers": [{**A, "ttl": "30m"}, {**on_data("b", 2), "ttl": "1h"}, C]},
    "nested": all_of({"type": "any_of", "triggers": [A, on_data("b", 2)]}, {**C, "ttl": "40m"}, timeout="90m"),
    "window": all_of(A, B, C, window={"every": "day", "zone": "Asia/Kolkata"}),
    "max_wait": {**on_data("a", 3), "max_wait": "1h"},
    "ttl": {**on_data("a", 3), "ttl": "1h"},
}
ALONE = ("max_wait", "ttl")
LATEST = 300
"""Minute of the last event."""
FIRST_READ = st.lists(st.tuples(st.integers(0, 2), st.integers(LATEST - 75, LATEST)), min_size=1, max_size=4)
READ_LATE = st.lists(st.tuples(st.integers(0, 2), st.integers(LATEST - 150, LATEST)), min_size=1, max_size=5)


@settings(max_examples=examples(200), deadline=None)
@example("all_of", [(1, 240), (0, 299)], [(0, 60)])
@example("all_of", [(0, 240), (1, 280)], [(0, 210)])
@example("max_wait", [(0, 250), (0, 290)], [(0, 215), (0, 170)])
@given(kind=st.sampled_from(sorted(TRIGGERS)), first_read=FIRST_READ, read_late=READ_LATE)
def test_given_two_topic_partitions_then_what_fires_and_what_remains_is_that_of_append_times(
    kind: str, first_read: list[tuple[int, int]], read_late: list[tuple[int, int]]
) -> None:
    """Whichever is read first. In order a job is sealed when it fires here; else it would take in all that follows, too."""
    leaves = 1 if kind in ALONE else 3 - (kind == "all_of")
    # No two at one instant, so that jobs have an order.
    first = [(f"x{n}", leaf % leaves, minute * MINUTE + 2 * n) for n, (leaf, minute) in enumerate(first_read)]
    late = [(f"y{n}", leaf % leaves, minute * MINUTE + 2 * n + 1) for n, (leaf, minute) in enumerate(read_late)]
    apart = a_desk(TRIGGERS[kind])
    count(apart, *rows_of(first))
    assume(not has_ended_in(apart))
    count(apart, *rows_of(late))
    in_order = a_desk({**TRIGGERS[kind], "take": "exactly_n"} if kind in ALONE else TRIGGERS[kind])
    with patch.object(CompositeTrigger, "take", "exactly_n"):
        count(in_order, *rows_of([*first, *late]))
    assume(not any(has_both(group) for group in given_up(in_order)))
    wanted, found = manifests(in_order), manifests(apart)
    if found == wanted:
        assert remaining(apart) == remaining(in_order)
        return
    # The last one waits, and has taken in what came behind it.
    *sealed, last = found
    assert sealed == wanted[: len(sealed)]
    assert last > wanted[len(sealed)]
    came_at = {name: after for name, _, after in (*first, *late)}
    assert min(came_at[name] for name in last) == min(came_at[name] for name in wanted[len(sealed)])


def rows_of(events: list[tuple[str, int, int]]) -> list[InboxRow]:
    """Returns them as they are counted together; names of the topic partition that is read first begin with x, the other's with y."""
    numbered = enumerate(sorted(events, key=lambda event: event[2]), start=50 * (events[0][0][0] == "y"))
    return [came(number, leaf, name, after) for number, (name, leaf, after) in numbered]


def has_both(names: set[str]) -> bool:
    return len({name[0] for name in names}) > 1


def names_of(found: Iterable[Doc]) -> set[str]:
    return {entry["partition"] for entry in found}


def manifests(desk: DecisionHarness) -> list[set[str]]:
    """Returns what each job was made of, in the order of their first events."""
    made = [merged(entries(desk, job.id)) for job in jobs(desk)]
    return [names_of(found) for found in sorted(made, key=lambda found: min(entry["at"] for entry in found))]


def remaining(desk: DecisionHarness) -> list[tuple[Any, ...]]:
    found = [each for each in desk.records(Evidence, "E#") if not each.job]
    return [(each.counts, each.deadline, names_of(merged(entries(desk, each.id)))) for each in found]


def has_ended_in(desk: DecisionHarness) -> bool:
    """Whether something has come of what was counted."""
    return bool(jobs(desk) or desk.records(LedgerRow, "L#") or any(given_up(desk)))


def given_up(desk: DecisionHarness) -> Iterator[set[str]]:
    """Returns what went together without a job: a latch by itself, or all that was there."""
    kept = {job.id for job in jobs(desk)} | {each.id for each in desk.records(Evidence, "E#")}
    for evidence_id in sorted({each.evidence_id for each in desk.records(EvidenceChunk, "EC#")}):
        log = entries(desk, evidence_id)
        for number, line in enumerate(log):
            if line["kind"] == FORGET:
                yield names_of(entry for entry in merged(log[:number]) if entry["leaf"] == line["leaf"])
        if evidence_id not in kept:
            yield names_of(merged(log))
