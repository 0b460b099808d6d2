"""Events behind an outage, of which one topic partition is read before another: no deadline passes by what came late in the one before all
is counted that was in time for it (SEMANTICS 6.2).
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import pytest

from tests.support.builders import (
    EVENTS,
    EVENTS_ID,
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_match,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    an_inbox_row,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.evidence_bench import a_desk
from tests.support.harness.source_bench import TOPIC, a_source_apply, ask, lay
from tidegate_core.engine.actor_inputs import Begin, LogRecord, RecordsArrived
from tidegate_core.evidence.match import MatchEvents
from tidegate_core.evidence.watermark import PATIENCE_MS
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.ownership.evidence_deadlines import APART_MS_MAX
from tidegate_core.rows.effects import Commit, Effect
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.keys import topic_position
from tidegate_core.shard.events.deferred_inbox import KEPT_MS, NOTHING, CountedThrough, LowWatermarks
from tidegate_core.shard.shard_cache import ShardCache

A, B = on_data("a"), on_data("b")
REF = "flights/nightly"


def a_bench(trigger: Doc) -> ActorHarness:
    bench = ActorHarness(shards=1, event_topic_partitions=2)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, overlap="allow")))
    bench.run(SECOND)
    return bench


def events(bench: ActorHarness, *found: tuple[int, str, int]) -> None:
    """They come while nobody is there: minutes from now, name (whose first letter is the dataset), topic partition."""
    begun = bench.now
    bench.drain()
    for minutes, name, topic_partition in found:
        bench.now = begun + minutes * MINUTE
        bench.event(an_event(name, name[0]), topic_partition)
    bench.now = begun + 3 * HOUR


def reads_apart(bench: ActorHarness, later: int | None, after: int = SECOND) -> None:
    """Somebody is there again, and reads one of the topic partitions so much later than the other one."""
    if later is not None:
        key = topic_position(bench.holding.cluster_id, EVENTS_ID, later)

        def is_of_it(effect: Effect) -> bool:
            return isinstance(effect, Commit) and effect.transaction.name == "cursor" and key in keys_of(effect)

        bench.hold_back(is_of_it, times=1_000)
    bench.new_actor()
    bench.give(Begin())
    bench.run(after)
    bench.as_usual()
    bench.release()


def keys_of(effect: Commit) -> list[Any]:
    return [action.key for action in effect.transaction.actions]


def brought(bench: ActorHarness) -> list[list[str]]:
    manifests: list[Any] = [order.context["manifest"] for order in bench.started]
    return [sorted(each["partition"] for each in manifest) for manifest in manifests]


@pytest.mark.parametrize("on_timeout", ["abort", "partial"])
@pytest.mark.parametrize("later", [0, 1])
def test_given_what_came_in_time_and_is_read_behind_what_came_too_late_then_the_pair_is_one(
    later: int, on_timeout: str
) -> None:
    """Found by a review: the deadline passed as soon as the late one was counted; three were given up, and nothing ran."""
    bench = a_bench(all_of(A, B, timeout="20m", on_timeout=on_timeout))
    bench.event(an_event("a1", "a"))
    bench.run(SECOND)
    events(bench, (10, "b1", 1), (60, "a2", 0))
    reads_apart(bench, later)
    bench.run(HOUR)
    assert {"a1", "b1"} <= set(brought(bench)[0])


PAIR = all_of(A, B, timeout="20m")
HOLDING = all_of({**A, "ttl": "15m"}, {**B, "ttl": "15m"})
TIMED = all_of({**every("1h"), "ttl": "10m"}, {**A, "ttl": "10m"}, {**B, "ttl": "10m"})
SETTLING = {**on_data("a", 2), "settle": "15m"}
BY_TICK = all_of({**every("10m"), "driver": "time"}, A, B, timeout="30m")
FEW = ((1, "a1", 0), (11, "b1", 1), (12, "a4", 1), (60, "a2", 0), (90, "b2", 1), (100, "a3", 0))
MANY = tuple((minutes, f"{name}{minutes}", "ab".index(name)) for minutes in range(0, 170, 4) for name in "ab")


@pytest.mark.parametrize("later", [0, 1])
@pytest.mark.parametrize("found", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many")])
@pytest.mark.parametrize(
    "trigger",
    [
        pytest.param(PAIR, id="timeout"),
        pytest.param(HOLDING, id="ttl"),
        pytest.param(TIMED, id="ticks"),
        pytest.param(SETTLING, id="settle"),
        pytest.param(BY_TICK, id="instances"),
    ],
)
def test_given_one_topic_partition_that_is_read_before_the_other_then_nothing_is_another_than_if_they_were_read_together(
    trigger: Doc, found: tuple[tuple[int, str, int], ...], later: int
) -> None:
    together, apart = a_bench(trigger), a_bench(trigger)
    for bench, which in ((together, None), (apart, later)):
        events(bench, *found)
        reads_apart(bench, which)
        bench.passes_over_routine = True
        bench.run(4 * HOUR)
    assert (apart.status_of("apply-nightly"), apart.ledger() != []) == ("accepted", True)
    assert brought(apart) == brought(together)
    assert [row[0] for row in apart.ledger()] == [row[0] for row in together.ledger()]


def test_given_a_topic_partition_that_nobody_reads_then_what_waits_is_counted_without_it() -> None:
    bench = a_bench(PAIR)
    bench.event(an_event("a1", "a"))
    bench.run(SECOND)
    events(bench, (10, "b1", 1), (60, "a2", 0), (61, "b2", 0))
    reads_apart(bench, later=1, after=PATIENCE_MS + MINUTE)
    assert brought(bench) == [["a2", "b2"]]
    assert any("topic partitions 1 of the events topic" in str(row.get("detail")) for row in bench.rows("L#"))


@pytest.mark.parametrize("seconds", [1, 5, 35, 100, 250])
def test_given_a_topic_partition_that_nobody_reads_then_an_event_that_comes_while_others_wait_is_counted_no_later_than_they(
    seconds: int,
) -> None:
    """Read again: it waited for those before it, five minutes, and then for as long by itself."""
    bench = a_bench(all_of(A, B, timeout="30s"))
    bench.log(EVENTS, 1).append(LogRecord(0, bench.now, None, json.dumps(an_event("x", "x")).encode()))
    bench.event(an_event("a1", "a"), 0)
    bench.run(40 * SECOND)
    bench.event(an_event("a2", "a"), 0)
    bench.run(seconds * SECOND)
    bench.event(an_event("a3", "a"), 0)
    bench.event(an_event("b3", "b"), 0)
    bench.run(PATIENCE_MS + APART_MS_MAX + 2 * SECOND)
    assert {"a3", "b3"} <= {name for each in brought(bench) for name in each}


def test_given_a_topic_partition_that_nobody_reads_and_events_all_the_while_then_what_is_asked_for_them_is_bounded() -> (
    None
):
    """Read again: ten wait at once for one namespace, and each asked for all that is unread twice a second, 150 reads and questions together."""
    bench = a_bench(all_of(A, B, timeout="30s"))
    bench.log(EVENTS, 1).append(LogRecord(0, bench.now, None, json.dumps(an_event("x", "x")).encode()))
    asked: list[int] = []
    for number in range(2 * PATIENCE_MS // (10 * SECOND)):
        bench.event(an_event(f"a{number}", "a"), 0)
        before = len(bench.asked)
        bench.run(10 * SECOND)
        asked.append(len(bench.asked) - before)
    assert max(asked) < 800


@pytest.mark.parametrize("apart", [0, 3 * SECOND])
def test_given_a_source_that_nobody_reads_then_what_waits_for_it_holds_up_no_other_namespace(apart: int) -> None:
    """Read again: who began to wait next had its turn when those before it were found out, up to five minutes later."""
    bench = a_bench(PAIR)
    bench.create_topic(TOPIC)
    ask(bench, a_source_apply())
    bench.request(an_apply(a_spec("other", trigger=PAIR, overlap="allow") | {"namespace": "trains"}))
    bench.run(SECOND)
    begun = bench.now
    lay(bench, "unread")
    bench.run(30 * MINUTE)
    for topic_partition, namespace in enumerate(("flights", "trains")):
        for partition, at in (("x", begun), ("z", begun + 25 * MINUTE)):
            event = an_event(partition, "a", f"{namespace}/{partition}") | {"namespace": namespace}
            log = bench.log(EVENTS, topic_partition)
            log.append(LogRecord(len(log), at, None, json.dumps(event).encode()))
        bench.hand_over(EVENTS, topic_partition, 0)
        bench.run(apart)
    bench.run(3 * SECOND - apart)
    assert [row["namespace"] for row in bench.rows("L#")] == ["trains"]
    bench.run(PATIENCE_MS)
    assert [row["namespace"] for row in bench.rows("L#")] == ["flights", "trains"]


def test_given_somebody_there_then_an_event_behind_a_deadline_is_counted_within_two_seconds() -> None:
    bench = a_bench(all_of(A, B, timeout="20m"))
    bench.event(an_event("a1", "a"))
    bench.run(20 * MINUTE)
    bench.event(an_event("a2", "a"))
    bench.event(an_event("b2", "b"), 1)
    bench.run(2 * SECOND)
    assert brought(bench) == [["a2", "b2"]]


def test_given_entries_of_several_days_then_each_waits_for_the_end_of_its_own() -> None:
    """Read again: the end of the first one's day was taken for how long each of them may wait."""
    desk, memory = a_desk(all_of(A, B, window={"every": "day", "zone": "UTC"})), ShardCache(0)
    memory.settled.connect(lambda namespace: None)
    midnight = parse_instant("2025-11-14T00:00:00Z")
    memory.settled.remember([REF], midnight + 20 * HOUR, ())
    late = midnight + 24 * HOUR
    for number, at in enumerate((midnight - 16 * HOUR, late - 10 * MINUTE, late + 10 * MINUTE), 1):
        fact = json.dumps({"type": "data.partition", "namespace": "flights", "dataset": "a", "partition": f"x{number}"})
        desk.lay(an_inbox_row(number, a_match(f"x{number}", at=at, fact=fact)))
    rows = tuple(row.key(0) for row in desk.records(InboxRow, "I#"))
    desk.decide(MatchEvents(REF, rows, memory=memory), late + HOUR)
    assert memory.settled.waits(REF)
    assert len(desk.records(InboxRow, "I#")) == 2


TRIPLE = all_of({**A, "ttl": "50s"}, B, on_data("c"), timeout="150s")
PAIRS = {**on_data("a", 2), "settle": "50s", "max_settle": "60s"}
Came: TypeAlias = tuple[int, str, int]
"""Seconds, data partition, topic partition."""
Read: TypeAlias = tuple[int, int, int]
"""Seconds, topic partition, and the end of what is read of it."""


def read_when(trigger: Doc, came: list[Came], read: list[Read]) -> list[list[str]]:
    """Returns what runs where this is appended, and read, when it says."""
    bench = ActorHarness(shards=1, event_topic_partitions=3)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, overlap="allow")))
    bench.run(SECOND)
    begun = bench.now
    places = dict.fromkeys(range(3), 0)
    for at in sorted({at for at, *_ in (*came, *read)}):
        bench.run(begun + at * SECOND - bench.now)
        for _, name, topic_partition in [each for each in came if each[0] == at]:
            log = bench.log(EVENTS, topic_partition)
            log.append(LogRecord(len(log), bench.now, None, json.dumps(an_event(name, name[0])).encode()))
        for _, topic_partition, end in [each for each in read if each[0] == at]:
            records = bench.log(EVENTS, topic_partition)[places[topic_partition] : end]
            bench.give(RecordsArrived(EVENTS, topic_partition, tuple(records), EVENTS_ID))
            places[topic_partition] = end
    bench.run(HOUR)
    return brought(bench)


@pytest.mark.parametrize(
    ("trigger", "came", "read", "first"),
    [
        pytest.param(
            TRIPLE,
            [(25, "a0", 0), (30, "b1", 0), (70, "x", 1), (125, "c1", 1), (130, "a1", 1), (200, "b2", 0)],
            [(25, 0, 1), (30, 0, 2), (200, 0, 3), (225, 1, 1), (230, 1, 3)],
            ["a1", "b1", "c1"],
            id="what-is-left-behind-a-ttl",
        ),
        pytest.param(
            TRIPLE,
            [(15, "b1", 1), (25, "a0", 0), (125, "c1", 2), (130, "a1", 2), (200, "b2", 1)],
            [(25, 0, 1), (210, 1, 2), (225, 2, 2)],
            ["a1", "b1", "c1"],
            id="what-waits-longer-than-its-leaf",
        ),
        pytest.param(
            PAIRS,
            [(15, "a1", 0), (20, "a2", 0), (60, "a3", 1), (77, "a4", 2), (90, "a5", 0)],
            [(15, 0, 1), (20, 0, 2), (90, 0, 3), (100, 1, 1), (105, 2, 1)],
            ["a1", "a2", "a3", "a4"],
            id="what-settles-for-as-long-as-it-may",
        ),
    ],
)
def test_given_a_deadline_that_is_settled_and_another_behind_it_then_what_comes_late_waits_for_that_as_well(
    trigger: Doc, came: list[Came], read: list[Read], first: list[str]
) -> None:
    """Read again: only the next deadline, and the shortest wait, was looked at; a pair that was complete in time was given up."""
    at_once = [
        (at, where, 1 + [on for *_, on in came[:number]].count(where)) for number, (at, _, where) in enumerate(came)
    ]
    assert read_when(trigger, came, at_once)[0] == first
    assert set(first) <= set(read_when(trigger, came, read)[0])


@pytest.mark.parametrize("unread", [False, True])
@pytest.mark.parametrize(
    ("trigger", "came", "runs", "ledger"),
    [
        pytest.param(
            all_of({**A, "ttl": "10s"}, B), ["a1"], [], ["expired/evidence_expired", "skipped/nothing_new"], id="over"
        ),
        pytest.param(
            all_of({**A, "ttl": "10s"}, B, on_data("c")), ["a1", "b1"], [["b1"]], ["launched"], id="over-in-part"
        ),
        pytest.param({**on_data("a", 3), "max_wait": "10s"}, ["a1"], [["a1"]], ["launched"], id="has-fired"),
    ],
)
def test_given_a_deadline_right_before_a_reminder_then_it_passes_first_whoever_of_them_has_found_out_first(
    trigger: Doc, came: list[str], runs: list[list[str]], ledger: list[str], unread: bool
) -> None:
    """Read again: each looks every half second from its own instant on, so that the later one may be the first to see that all is read."""
    bench = a_bench({**trigger, "at_least_every": "1m"})
    state = bench.state_of()
    assert state is not None
    assert state.next_nominal is not None
    reminder = state.next_nominal
    bench.run(reminder - 10_100 - bench.now)
    for name in came:
        bench.event(an_event(name, name[0]))
    if unread:
        bench.log(EVENTS, 1).append(LogRecord(0, bench.now, None, json.dumps(an_event("x", "x")).encode()))
    bench.run(reminder + 950 - bench.now)
    bench.hand_over(EVENTS, 1, 0)
    bench.run(5 * SECOND)
    assert brought(bench) == runs
    assert [row[0] for row in bench.ledger()] == ledger


@pytest.mark.parametrize("first_is_decided", [False, True])
@pytest.mark.parametrize(
    "trigger",
    [pytest.param(all_of(A, B, timeout="70s"), id="time-out"), pytest.param(all_of({**A, "ttl": "70s"}, B), id="ttl")],
)
def test_given_a_topic_partition_unread_over_two_reminders_then_what_the_second_one_is_to_make_a_job_of_is_not_given_up(
    trigger: Doc, first_is_decided: bool
) -> None:
    """Found in review: the state names the earliest of those that wait, which has nothing to do with what came behind it, and none once that
    was decided: a time-out behind the second one gave its evidence up.
    """
    bench = a_bench({**trigger, "at_least_every": "1m"})
    state = bench.state_of()
    assert state is not None
    assert state.next_nominal is not None
    reminder = state.next_nominal
    bench.run(reminder - 10_000 - bench.now)
    unread = bench.log(EVENTS, 1)
    unread.append(LogRecord(0, bench.now, None, json.dumps(an_event("x", "x")).encode()))
    bench.run(reminder + 10_100 - bench.now)
    if first_is_decided:
        unread.append(LogRecord(1, bench.now, None, json.dumps(an_event("a1", "a")).encode()))
        bench.run(reminder + 95_000 - bench.now)
        bench.give(RecordsArrived(EVENTS, 1, tuple(unread[:1]), EVENTS_ID))
    else:
        bench.event(an_event("a1", "a"), 0)
    bench.run(reminder + 100_500 - bench.now)
    bench.hand_over(EVENTS, 1, int(first_is_decided))
    bench.run(MINUTE)
    assert brought(bench) == [["a1"]]
    assert [row[0] for row in bench.ledger()].count("skipped/nothing_new") == int(first_is_decided)


PATIENT = all_of(A, B, timeout="20m", at_least_every="15m")


@pytest.mark.parametrize(
    ("away", "late", "runs"),
    [
        pytest.param(0, (), [["a1"]], id="somebody-there"),
        pytest.param(54, (), [["a1"]], id="nobody-there"),
        pytest.param(54, (40,), [["a1", "a40"]], id="and-data-behind-that-joins-what-waits"),
        pytest.param(54, (12,), [["a1", "a12"]], id="and-data-before-the-reminder"),
    ],
)
def test_given_a_reminder_before_a_time_out_and_nobody_there_for_both_then_it_has_what_is_there(
    away: int, late: tuple[int, ...], runs: list[list[str]]
) -> None:
    """Read again: the time-out had been found out first, and gave up what the reminder was to make a job of."""
    bench = a_bench(PATIENT)
    begun = bench.now
    bench.run(5 * MINUTE)
    bench.event(an_event("a1", "a"))
    bench.run(MINUTE)
    for minutes in late:
        event = json.dumps(an_event(f"a{minutes}", "a")).encode()
        bench.log(EVENTS, 1).append(LogRecord(len(bench.log(EVENTS, 1)), begun + minutes * MINUTE, None, event))
    if away:
        bench.away(away * MINUTE)
    bench.run(20 * MINUTE)
    assert brought(bench) == runs
    assert "expired/trigger_timeout" not in [row[0] for row in bench.ledger()]


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    ("behind", "runs"),
    [pytest.param((), [["a1", "a2"]]), pytest.param(("a3",), [["a1", "a2"], ["a3"]], id="and-one-behind-it")],
)
def test_given_something_unread_at_a_reminder_then_its_job_has_what_was_announced_before_it_also_in_a_hold(
    behind: tuple[str, ...], runs: list[list[str]], held: bool
) -> None:
    """Read again: the schedule's clock stands still in a hold, so that all that was counted in it seemed to come behind the reminder."""
    bench = a_bench({**on_data("a", 9), "take": "exactly_n", "at_least_every": "15m"})
    state = bench.state_of()
    assert state is not None
    assert state.next_nominal is not None
    reminder = state.next_nominal
    bench.event(an_event("a1", "a"))
    bench.run(5 * MINUTE)
    if held:
        bench.request(a_request("suspend", mode="hold"))
    bench.run(reminder - MINUTE - bench.now)
    bench.log(EVENTS, 1).append(LogRecord(0, bench.now, None, json.dumps(an_event("a2", "a")).encode()))
    bench.run(reminder + 5 * SECOND - bench.now)
    for name in behind:
        bench.event(an_event(name, "a"), 0)
    bench.run(SECOND)
    bench.hand_over(EVENTS, 1, 0)
    bench.run(30 * SECOND)
    if held:
        bench.request(a_request("resume", backlog="all"))
    bench.run(20 * MINUTE)
    assert brought(bench) == runs


# -- what is known --------------------------------------------------------------------------------------------------------


def test_given_schedules_that_wait_then_the_first_one_of_a_namespace_begins_and_each_is_taken_once() -> None:
    begun: list[str] = []
    settled = LowWatermarks()
    settled.wait("ns/early", 5)
    settled.connect(begun.append)
    for ref in ("ns/a", "ns/b", "ns/a", "other/c"):
        settled.wait(ref, 10)
    assert begun == ["ns", "other"]
    assert settled.take_unasked("ns", 20) == ["ns/a", "ns/b"]
    assert (settled.is_to_begin("ns"), settled.is_to_begin("other")) == (False, True)
    settled.wait("ns/a", 20)
    assert (begun, settled.take_unasked("ns", 20)) == (["ns", "other"], [])
    assert settled.take_waiting(["ns/b", "ns/d"], 15) == {"ns/b"}
    assert (settled.waits("ns/a"), settled.waits("ns/b")) == (True, False)


def test_given_events_behind_what_is_found_out_then_somebody_finds_out_for_them_as_well_and_once() -> None:
    begun: list[str] = []
    settled = LowWatermarks()
    settled.connect(begun.append)
    settled.wait("ns/a", 10)
    assert settled.take_unasked("ns", 20) == ["ns/a"]
    settled.wait("ns/a", 30)
    settled.wait("ns/a", 25)
    assert (len(begun), settled.is_to_begin("ns")) == (2, True)
    assert settled.take_unasked("ns", 28) == ["ns/a"]
    assert settled.is_to_begin("ns"), "its clock is behind the broker's: once more"
    assert settled.take_unasked("ns", 40) == ["ns/a"]
    assert not settled.is_to_begin("ns")
    assert settled.take_waiting(["ns/a"], 20) == {"ns/a"}
    settled.wait("ns/a", 30)
    assert len(begun) == 2, "somebody does already"
    settled.take_waiting(["ns/a"], 40)
    settled.wait("ns/a", 30)
    assert len(begun) == 3, "nobody does any more"


def test_given_what_is_settled_then_it_is_known_for_ten_minutes() -> None:
    settled = LowWatermarks()
    settled.remember(["ns/a", "ns/b"], 1_000, ("a topic",))
    settled.remember(["ns/b"], 2_000, ())
    assert (settled.through("ns/a"), settled.through("ns/b")) == ((1_000, ("a topic",)), (2_000, ()))
    settled.remember(["ns/c"], 1_000 + KEPT_MS, ())
    assert (settled.through("ns/a").instant, settled.through("ns/b").instant) == (0, 2_000)


def test_given_two_that_find_out_at_once_then_who_began_first_takes_nothing_back() -> None:
    """Seeds 28004696 and 28005635: behind an outage it came last, and what was in time for a deadline of the later one waited again."""
    settled = LowWatermarks()
    settled.remember(["ns/a"], 2_000, ("a topic",))
    settled.remember(["ns/a", "ns/b"], 1_000, ())
    assert (settled.through("ns/a"), settled.through("ns/b")) == ((2_000, ("a topic",)), (1_000, ()))


@pytest.mark.parametrize(
    ("trigger", "minutes"),
    [
        pytest.param(PAIR, 20, id="timeout"),
        pytest.param(all_of({**every("10m"), "ttl": "1m"}, A), 10, id="tick"),
        pytest.param({**on_data("a", 2), "at_least_every": "20m"}, 20, id="reminder"),
    ],
)
def test_given_what_is_settled_is_forgotten_before_a_decision_then_it_is_found_out_anew(
    monkeypatch: pytest.MonkeyPatch, trigger: Doc, minutes: int
) -> None:
    """Read again: a decision may take as long as a store is silent, and what is known is not kept for ever."""
    known, found_out = LowWatermarks.through, [0]

    def forgotten_twice(settled: LowWatermarks, ref: str) -> CountedThrough:
        found_out[0] += 1
        return NOTHING if found_out[0] <= 4 else known(settled, ref)  # Once by who takes the row, once by the decision.

    bench = a_bench(trigger)
    bench.event(an_event("a1", "a"))
    bench.run(SECOND)
    monkeypatch.setattr(LowWatermarks, "through", forgotten_twice)
    bench.run((minutes + 1) * MINUTE)
    assert found_out[0] >= 6
    assert len(bench.rows("L#")) + len(bench.rows("J#")) > 0


def test_given_a_time_out_that_waits_for_a_source_that_nobody_reads_then_one_of_another_namespace_passes() -> None:
    bench = a_bench(PAIR)
    bench.create_topic(TOPIC)
    ask(bench, a_source_apply())
    bench.request(an_apply(a_spec("other", trigger=PAIR, overlap="allow") | {"namespace": "trains"}))
    bench.run(SECOND)
    for namespace in ("flights", "trains"):
        bench.event(an_event("x", "a", namespace) | {"namespace": namespace})
    bench.run(19 * MINUTE)
    lay(bench, "unread")
    bench.run(MINUTE + 3 * SECOND)
    assert [row["namespace"] for row in bench.rows("L#")] == ["trains"]
