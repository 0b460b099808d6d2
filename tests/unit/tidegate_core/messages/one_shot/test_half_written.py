"""Two records of one id without a key, and an owner that falls with half of what it wrote of one of them (I3, I8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.stories.stage import comes_through_the_inbox
from tests.support.builders import MINUTE, SECOND, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_batch
from tests.support.harness.scripted_answers import Rule
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.effects import EffectRequest, Write
from tidegate_core.rows.store_operations import Delete, Put

AGO = 20 * SECOND
"""Between the two records of the id."""


def crash_with_a_part_of_the_next_messages(
    bench: ActorHarness, is_written: Callable[[Put | Delete], bool], *, then: Callable[[], None]
) -> None:
    """The store takes a part of the next batch of messages, and the owner that sent it falls before the answer."""

    def act(ask: EffectRequest) -> None:
        assert isinstance(ask.effect, Write)
        bench.store.write([each for each in ask.effect.batch.actions if is_written(each)])
        then()
        bench.crash()

    bench._rules.append(Rule(a_batch("messages"), 1, act))


@pytest.mark.parametrize("falls_again", [False, True])
@pytest.mark.parametrize("after", ["1m", "5m"], ids=["in the window", "beyond the window"])
@pytest.mark.parametrize("is_earlier", [False, True], ids=["the other is later", "the other is earlier"])
def test_given_a_timer_row_without_its_message_then_another_record_of_the_id_is_sent_once_at_its_own_time(
    is_earlier: bool, after: str, falls_again: bool
) -> None:
    """Found by a review: it was sent at the other record's time, before its own or once more.

    Of the record that the owner has read, only the timer row is written. The other record lies in the inbox, with which the next owner
    deals first: that is the message. Then it reads the first record, as a repeat.

    Args:
        is_earlier: The record of the inbox was appended before the other one.
        after: How long after its record each is due.
        falls_again: The next owner falls as well, between the two instants, with what it sent behind its position.
    """
    bench = ActorHarness(shards=1)
    bench.run(2 * AGO)
    document = a_send("m-1", after=after)
    asked_at = bench.now + (-AGO if is_earlier else AGO)
    crash_with_a_part_of_the_next_messages(
        bench,
        lambda action: action.key.sk.startswith("D#"),
        then=lambda: comes_through_the_inbox(bench, document, asked_at),
    )
    bench.request(document)
    bench.run(AGO + SECOND)
    if falls_again:
        bench.run(min(int(str(row["sk"]).split("#")[1]) for row in bench.rows("D#")) + AGO // 2 - bench.now)
        bench.crash()
    bench.run(6 * MINUTE)
    sent = [(each.at, parse_instant(each.headers["tidegate-nominal"])) for each in bench.on("out")]
    assert sent, "I1: a message of two records was not delivered"
    assert all(at >= nominal for at, nominal in sent), "I3: a message of two records was delivered before its time"
    instants = [at for at, _ in sent]
    assert max(instants) - min(instants) <= 5 * SECOND, "I8: a message of two records was delivered at two instants"
