"""What is brought into memory and when: the window, its limits, the payloads' budget (DESIGN 5, I1)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, REQUESTS, SECOND, a_cancel, a_recurring, a_send, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.tier import examples
from tidegate_core.messages.message_scheduler import MessageScheduler
from tidegate_core.messages.wire import payload_budget, timer_window
from tidegate_core.messages.wire.payload_budget import PAYLOAD_BYTES_MAX
from tidegate_core.messages.wire.timer_window import LAG_MS, place_of
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Effect, NotProduced, Produce, Read, ReadRange, Write

UNREACHED = 10**9
DAY = 24 * HOUR


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(shards=1)
    made.run(SECOND)
    return made


def a_load(effect: Effect) -> bool:
    return isinstance(effect, ReadRange) and effect.range.low.startswith("D#")


def to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def names(bench: ActorHarness) -> list[str]:
    return [str(sent.document["of"]) for sent in bench.on("out")]


def test_given_sort_keys_then_places_order_as_they_do() -> None:
    rows = [keys.message_timer(0, slot, name, "v").sk for slot in (1, 2, 30) for name in ("a", "b")]
    ends = [f"D#{keys.instant_text(slot)}#{keys.LAST}" for slot in (1, 2, 30)]
    mixed = sorted([*rows, *ends])
    assert [place_of(each) for each in mixed] == sorted(place_of(each) for each in mixed)


# -- a load that takes its time (I1, I8) -----------------------------------------------------------------------------------


def test_given_a_load_without_an_answer_then_no_checkpoint_passes_what_it_would_bring(bench: ActorHarness) -> None:
    """The plane's own rows of the same stretch fire meanwhile; what lies before them in the store must not be lost."""
    bench.request(a_send("far", after="80s"))
    bench.run(28 * SECOND)
    bench.lose(a_load, times=UNREACHED)
    bench.run(4 * SECOND)
    for number in range(3):
        bench.request(a_send(f"own-{number}", after=f"{52 + number}s"))
    bench.run(MINUTE)
    assert names(bench) == ["own-0", "own-1", "own-2"]
    bench._rules.clear()
    bench.run(10 * SECOND)
    assert names(bench) == ["own-0", "own-1", "own-2", "far"]


def test_given_a_crash_during_such_a_load_then_the_successor_delivers_it(bench: ActorHarness) -> None:
    bench.request(a_send("far", after="80s"))
    bench.run(28 * SECOND)
    bench.lose(a_load, times=UNREACHED)
    bench.run(4 * SECOND)
    bench.request(a_send("own", after="52s"))
    bench.run(MINUTE)
    bench._rules.clear()
    bench.crash()
    bench.run(10 * SECOND)
    assert "far" in names(bench)


def test_given_pages_then_each_raises_the_mark_and_what_it_holds_goes_out_while_the_next_is_waited_for(
    bench: ActorHarness,
) -> None:
    for second in range(3):
        bench.append(REQUESTS, 0, *(a_send(f"m-{second}-{n}", after=f"{70 + second}s") for n in range(500)))
    bench.run(25 * SECOND)
    answered = [0]

    def second_page(effect: Effect) -> bool:
        answered[0] += a_load(effect)
        return a_load(effect) and answered[0] > 1

    bench.lose(second_page, times=UNREACHED)
    bench.run(60 * SECOND)
    assert len(bench.on("out")) == 1_000
    (progress,) = bench.rows("PROGRESS")
    plane = bench.actor.planes[0]
    assert progress["fired_slot"] == plane.window.loaded_through[0]
    bench._rules.clear()
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 1_500


def test_given_a_write_beyond_the_window_without_an_answer_then_no_checkpoint_passes_its_place(
    bench: ActorHarness,
) -> None:
    """The window is extended over it, by a page that was read before it landed; then it lands, and the owner falls."""
    bench.request(a_send("near", after="65s"))
    bench.run(28 * SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "messages")
    bench.request(a_send("held", after="35s"))
    bench.run(45 * SECOND)
    assert names(bench) == ["near"]
    bench.hold_back(to_out, times=UNREACHED)
    bench.release()
    bench._rules.clear()
    bench.crash()
    bench.run(10 * MINUTE)
    assert "held" in names(bench)


# -- how much is loaded ----------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """A memory of 1,000 rows."""
    monkeypatch.setattr(timer_window, "ROWS_MAX", 1_000)
    return 1_000


def a_backlog(bench: ActorHarness, count: int, **more: object) -> None:
    for first in range(0, count, 500):
        bench.append(REQUESTS, 0, *(a_send(f"m-{first + n}", after="3m", **more) for n in range(500)))
    bench.crash()
    bench.now += 10 * MINUTE


def test_given_a_backlog_then_it_is_loaded_as_it_is_delivered(bench: ActorHarness, small: int) -> None:
    most = [0]

    def look(effect: Effect) -> bool:
        if bench.actor.planes:
            most[0] = max(most[0], bench.actor.planes[0].queue.loaded)
        return False

    backlog = tier.at_night(4_000, else_=2_500)
    a_backlog(bench, backlog)
    bench.answer_with(look, NotProduced("never", "asked"))
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == backlog
    assert most[0] <= small + 1_000


def test_given_a_full_memory_and_new_messages_then_all_are_delivered_and_the_position_gets_there(
    bench: ActorHarness, small: int
) -> None:
    """New rows that lie behind what is loaded wait in memory; they must not keep the rest from being loaded."""
    backlog, groups = tier.at_night(4_000, else_=1_500), tier.at_night(20, else_=6)
    a_backlog(bench, backlog)
    bench.lose(a_load, times=1)
    for number in range(groups):
        bench.append(REQUESTS, 0, *(a_send(f"new-{number}-{n}", after=f"{number + 1}s") for n in range(100)))
    bench.run(2 * MINUTE)
    assert len({sent.headers["tidegate-id"] for sent in bench.on("out")}) == backlog + 100 * groups
    (progress,) = bench.rows("PROGRESS")
    assert progress["delivered"] == backlog + 100 * groups
    assert len(bench.actor.planes[0].queue) == 0


def test_given_large_payloads_due_at_once_then_no_more_than_the_budget_is_in_memory(bench: ActorHarness) -> None:
    most = [0]

    def look(effect: Effect) -> bool:
        for plane in bench.actor.planes.values():
            held = sum(row.held for row in plane.queue)
            assert plane.payloads.bytes_held == held
            assert sum(len(row.message.payload) for row in plane.queue if row.message is not None) <= held
            most[0] = max(most[0], held)
        return False

    for number in range(20):
        bench.append(
            REQUESTS, 0, *(a_send(f"m-{number}-{n}", after="3m", payload_text="x" * 100_000) for n in range(50))
        )
    bench.crash()
    bench.now += 10 * MINUTE
    bench.answer_with(lambda effect: isinstance(effect, Read | Produce) and look(effect), NotProduced("", ""))
    bench.run(SECOND)
    assert len(bench.on("out")) == 1_000
    assert PAYLOAD_BYTES_MAX // 2 < most[0] <= PAYLOAD_BYTES_MAX


def test_given_payloads_that_wait_for_their_time_then_what_is_due_has_room(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload_budget, "PAYLOADS_AHEAD_BYTES_MAX", 300_000)
    monkeypatch.setattr(payload_budget, "PAYLOAD_BYTES_MAX", 600_000)
    bench.append(REQUESTS, 0, *(a_send(f"far-{n}", after="50s", payload_text="x" * 100_000) for n in range(20)))
    bench.append(REQUESTS, 0, *(a_send(f"due-{n}", after="1s", payload_text="x" * 100_000) for n in range(20)))
    bench.run(2 * SECOND)
    assert len(bench.on("out")) == 20
    assert bench.actor.planes[0].payloads.bytes_held == 300_000


# -- what the payloads hold ------------------------------------------------------------------------------------------------


def planes(bench: ActorHarness) -> Iterator[MessageScheduler]:
    yield from bench.actor.planes.values()


def test_given_a_debounce_then_nothing_is_held_for_what_was_replaced_or_cancelled(bench: ActorHarness) -> None:
    for number in range(20):
        bench.request(a_send(f"m-{number}", key="k", after="20s", payload_text="x" * 1_000))
        bench.run(100)
    for number in range(5):
        bench.request(a_send(f"c-{number}", after="20s", payload_text="x" * 1_000))
        bench.request(a_cancel(f"cancel-{number}", message_id=f"c-{number}"))
    assert [plane.payloads.bytes_held for plane in planes(bench)] == [1_000]


def test_given_a_cancel_while_its_payload_is_on_its_way_then_nothing_is_held_for_it(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="8s"))
    bench.crash()
    bench.hold_back(
        lambda effect: isinstance(effect, Read) and effect.keys[0].sk.startswith("M#"), times=2, answer_only=True
    )
    bench.run(6 * SECOND)
    assert bench.holds_something
    assert [plane.payloads.bytes_held > 0 for plane in planes(bench)] == [True]
    bench.request(a_cancel(message_id="m-1"))
    bench.release()
    assert bench.status_of("c-1") == "cancelled"
    assert [plane.payloads.bytes_held for plane in planes(bench)] == [0]


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["sent meanwhile", "cancelled meanwhile"])
def test_given_a_message_that_ends_while_a_fire_waits_for_its_definition_then_nothing_is_held_for_it(
    bench: ActorHarness, is_cancelled: bool
) -> None:
    """Read: its bytes were held for good; of many of them there is no room for any payload."""
    bench.request(an_apply(a_recurring(trigger=every("10s"))))
    bench.run(15 * SECOND)
    bench.request(a_send("m-1", after="3s", payload_text="x" * 1_000))
    bench.run(SECOND // 2)
    bench.crash()
    bench.hold_back(lambda effect: isinstance(effect, Read) and effect.keys[0].sk.startswith("DEF#"))
    bench.run(SECOND)
    assert bench.holds_something
    if is_cancelled:
        bench.request(a_cancel(message_id="m-1"))
    bench.run(5 * SECOND)
    bench.as_usual()
    bench.run(MINUTE)
    assert len([sent for sent in bench.on("out") if len(sent.value) == 1_000]) == (0 if is_cancelled else 1)
    (plane,) = planes(bench)
    assert plane.payloads.bytes_held == sum(row.held for row in plane.queue)


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["send", "replace", "cancel", "refuse", "give back", "crash", "wait"]),
        st.integers(0, 3),
        st.integers(0, 20),
    ),
    max_size=25,
)


@settings(max_examples=examples(60), deadline=None)
@given(ACTS)
def test_given_any_run_then_the_budget_holds_what_the_rows_hold(acts: list[tuple[str, int, int]]) -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    for number, (act, which, seconds) in enumerate(acts):
        match act:
            case "send":
                bench.request(a_send(f"m-{number}", after=f"{seconds}s", payload_text="x" * (which * 100 + 1)))
            case "replace":
                bench.request(a_send(f"m-{number}", key=f"k{which}", after=f"{seconds}s", payload_text="y" * 50))
            case "cancel":
                bench.request(a_cancel(f"c-{number}", key=f"k{which}"))
            case "refuse":
                bench.answer_with(to_out, NotProduced("refused", "unknown topic"))
            case "give back":
                bench.answer_with(to_out, NotProduced("unavailable", "transport"))
            case "crash":
                bench.crash()
            case _:
                bench.run(seconds * SECOND)
        for plane in planes(bench):
            in_memory = [row for row in plane.queue if row.message is not None]
            assert plane.payloads.bytes_held == sum(row.held for row in plane.queue)
            assert all(row.held == len(row.message.payload) for row in in_memory if row.message is not None)
            assert not [row for row in in_memory if row.stage.is_closed]
    bench.run(HOUR)
    assert [plane.payloads.bytes_held for plane in planes(bench)] == [0]


# -- a shard that lags -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late_ms", [LAG_MS - HOUR, LAG_MS + HOUR], ids=["within", "beyond"])
def test_given_a_shard_that_lags_a_quarter_of_the_rows_life_then_it_says_so_and_renews_them(
    bench: ActorHarness, late_ms: int
) -> None:
    for number in range(100):
        bench.request(a_send(f"m-{number}", after="3m"))
    bench.crash()
    bench.now += 3 * MINUTE + late_ms
    bench.run(SECOND)
    assert len(bench.on("out")) == 100
    lags = late_ms > LAG_MS
    assert [notice.fields["rows"] for notice in bench.notices("shard_lags")] == ([100] if lags else [])
    expected = (bench.now - SECOND + 30 * DAY) // 1000
    for row in [*bench.rows("D#"), *bench.rows("M#")]:
        assert (int(str(row["expires_at"])) == expected) == lags
