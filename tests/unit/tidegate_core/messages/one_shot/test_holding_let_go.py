"""What is held back under a wide suspend and let go: cancelled on its way, and one that the store does not take."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, a_cancel, a_send, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.unit.tidegate_core.messages.one_shot.test_held_messages import ask, commit_of, control, held
from tidegate_core.rows.effects import Commit, Effect, Invalid, Read, ReadRange, Unavailable


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(shards=1)
    made.run(SECOND)
    return made


@pytest.mark.parametrize("looks_late", [False, True])
def test_given_a_cancel_while_what_was_held_back_is_let_go_then_what_was_never_sent_is_cancelled(
    bench: ActorHarness, looks_late: bool
) -> None:
    """Found in review: it was answered `too_late`, and nobody counted it."""
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(5 * SECOND)
    bench.hold_back(commit_of("let_go"))
    bench.request(control("resume"))
    bench.run(SECOND)
    assert bench.holds_something
    bench.request(a_cancel("c-1", key="k"))
    bench.run(SECOND)
    assert bench.status_of("c-1") is None
    if looks_late:
        bench.hold_back(lambda effect: isinstance(effect, Read) and any(key.sk.startswith("H#") for key in effect.keys))
    bench.release()
    bench.run(20 * SECOND)
    assert bench.holds_something == looks_late
    bench.release()
    bench.run(20 * SECOND)
    assert bench.delivered() == []
    assert bench.status_of("c-1") == "cancelled"
    assert sum(int(str(row["cancelled"])) for row in (*bench.rows("PROGRESS"), *bench.rows("Y#"))) == 1


def test_given_one_held_message_that_the_store_does_not_take_then_the_others_go_and_later_controls_too(
    bench: ActorHarness,
) -> None:
    """Found in review: it ended whoever brings the shard under its controls, and no later one was ever carried out."""
    ask(bench, control("suspend"))
    for number in range(3):
        bench.request(a_send(f"m-{number}", after="1s"))
    bench.run(5 * SECOND)
    poison = held(bench)[0].id

    def is_poison(effect: Effect) -> bool:
        return isinstance(effect, Commit) and effect.transaction.name == "let_go" and poison in str(effect.transaction)

    bench.answer_with(is_poison, Invalid("scripted"), times=1_000)
    bench.request(control("resume"))
    bench.run(MINUTE)
    assert len(bench.delivered()) == 2
    bench._rules.clear()
    bench.request(control("suspend", request_id="s-2"))
    bench.run(MINUTE)
    bench.request(control("resume", request_id="r-2"))
    bench.run(MINUTE)
    assert len(bench.delivered()) == 3
    assert bench.status_of("r-2") == "accepted"


def test_given_a_message_that_is_held_back_and_let_go_in_one_millisecond_then_it_is_delivered(
    bench: ActorHarness,
) -> None:
    """Found in review: what had left that very place stood in its way, and a checkpoint passed it."""
    bench.request(a_send("m-1", after="10s"))
    due = bench.now + 10 * SECOND
    ask(bench, control("suspend"))
    bench.run(due - bench.now)
    assert len(held(bench)) == 1
    bench.request(control("resume"))
    bench.run(MINUTE)
    assert len(bench.delivered()) == 1


def reads_messages(effect: Effect) -> bool:
    return isinstance(effect, Read) and bool(effect.keys) and all(key.sk.startswith("M#") for key in effect.keys)


def reads_window(effect: Effect) -> bool:
    return isinstance(effect, ReadRange) and effect.range.low == "D#"


def test_given_a_page_that_brings_what_is_being_let_go_and_a_cancel_of_it_then_it_is_counted_once(
    bench: ActorHarness,
) -> None:
    """Found in review: the row had ended by the cancel, was taken for what had been held back from there, and was counted anew."""
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(5 * SECOND)
    bench.answer_with(reads_window, Unavailable("scripted"), times=10**9)
    bench.run(2 * MINUTE)
    bench.hold_back(reads_messages, times=1)  # For its end, once it is let go.
    bench.request(control("resume"))
    bench.run(300)
    assert (len(bench.rows("D#")), held(bench)) == (1, [])
    bench.end_scripts()
    bench.hold_back(reads_messages, times=1)  # The payload of the row that a page brings.
    bench.run(SECOND)
    bench.request(a_cancel("c-1", key="k"))
    bench.run(300)
    bench.release_last()
    bench.run(300)
    bench.release()
    bench.run(MINUTE)
    bench.drain()
    assert (bench.status_of("c-1"), bench.delivered()) == ("cancelled", [])
    assert sum(int(str(row["cancelled"])) for row in (*bench.rows("PROGRESS"), *bench.rows("Y#"))) == 1


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("beside", [False, True])
def test_given_one_that_the_store_did_not_take_for_a_while_then_it_is_let_go_later(
    bench: ActorHarness, falls: bool, beside: bool
) -> None:
    """Found in review: behind the answer to the resume nobody came back to it, a successor neither, or not while others are suspended."""
    ask(bench, control("suspend"))
    for number in range(3):
        bench.request(a_send(f"m-{number}", after="1s"))
    bench.run(5 * SECOND)
    poison = held(bench)[0].id
    refused = commit_of("let_go")
    bench.answer_with(lambda each: refused(each) and poison in str(each), Invalid("scripted"), times=10**9)
    bench.request(control("resume"))
    bench.run(MINUTE)
    assert (bench.status_of("resume-orders"), len(bench.delivered()), len(held(bench))) == ("accepted", 2, 1)
    if beside:
        ask(bench, control("suspend", "others"))
    bench.end_scripts()
    if falls:
        bench.crash()
    bench.run(MINUTE if falls else HOUR)
    assert (len(bench.delivered()), held(bench)) == (3, [])


def test_given_a_read_that_fails_amid_a_resume_then_it_is_carried_out_later(bench: ActorHarness) -> None:
    """Found in review: the resume was never answered, and nothing was let go, until somebody changed another control."""
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", after="1s"))
    bench.run(5 * SECOND)
    bench.answer_with(
        lambda each: isinstance(each, Read) and any(key.sk.startswith("G#") for key in each.keys),
        Invalid("scripted"),
        times=1,
    )
    bench.request(control("resume"))
    bench.run(MINUTE)
    assert (bench.status_of("resume-orders"), bench.delivered()) == (None, [])
    bench.run(HOUR)
    assert (bench.status_of("resume-orders"), len(bench.delivered()), held(bench)) == ("accepted", 1, [])


def reads_what_is_held(effect: Effect) -> bool:
    return isinstance(effect, ReadRange) and effect.range.low == "H#" and effect.range.limit != 1


def with_one_that_is_left(bench: ActorHarness) -> None:
    """One message is held back that nothing covers any more, and that the store does not take."""
    ask(bench, control("suspend"))
    bench.request(a_send("m-0", after="1s"))
    bench.run(5 * SECOND)
    bench.answer_with(commit_of("let_go"), Invalid("scripted"), times=10**9)
    ask(bench, control("resume"))
    bench.run(5 * SECOND)
    assert len(held(bench)) == 1


@pytest.mark.parametrize("falls", [False, True])
def test_given_a_control_that_comes_while_what_was_left_is_let_go_then_it_is_carried_out(
    bench: ActorHarness, falls: bool
) -> None:
    """Found in review: nobody looked at it behind that; programs started under a suspend that was never answered."""
    with_one_that_is_left(bench)
    bench.request(an_apply(a_spec(trigger=every("10s"))))
    bench.run(SECOND)
    bench.end_scripts()
    if falls:
        bench.crash()
    bench.hold_back(reads_what_is_held)
    bench.run(11 * MINUTE)
    assert bench.holds_something
    bench.request(control("suspend", namespace=None, request_id="s-2"))
    bench.run(10 * SECOND)
    bench.as_usual()
    bench.run(MINUTE)
    assert bench.status_of("s-2") == "accepted"
    started = len(bench.started)
    bench.run(10 * MINUTE)
    assert len(bench.started) == started


def test_given_many_changes_while_one_is_left_then_it_is_tried_once_in_ten_minutes(bench: ActorHarness) -> None:
    with_one_that_is_left(bench)
    for number in range(5):
        for kind in ("suspend", "resume"):
            ask(bench, control(kind, namespace="elsewhere", request_id=f"{kind}-{number}"))
            bench.run(20 * SECOND)
    bench.run(10 * MINUTE)
    bench.asked.clear()
    bench.run(10 * MINUTE)
    assert sum(commit_of("let_go")(each) for each in bench.asked) == 1


def test_given_no_wide_control_ever_then_nobody_asks_what_is_held_back(bench: ActorHarness) -> None:
    for number in range(50):
        bench.request(a_send(f"m-{number}", after="10m"))
    bench.run(SECOND)
    bench.crash()
    bench.asked.clear()
    bench.run(12 * MINUTE)
    assert len(bench.delivered()) == 50
    asked = [key for each in bench.asked if isinstance(each, Read) for key in each.keys if key.sk.startswith("H#")]
    assert asked == []
    assert not any(isinstance(each, ReadRange) and each.range.low == "H#" for each in bench.asked)
