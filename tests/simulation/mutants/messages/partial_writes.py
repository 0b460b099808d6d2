"""The rule of half-written messages without a key (docs/protocol.md), switched off in the interleavings that it is against: two records of
one id share the rows' keys but for the instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import comes_through_the_inbox
from tests.support.builders import MINUTE, SECOND, a_send
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_batch
from tests.support.harness.scripted_answers import Rule
from tidegate_core.decisions.delivery_plane import sending
from tidegate_core.effects import Ask, Write
from tidegate_core.model.instants import parse_instant
from tidegate_core.store.values import Delete, Put

AGO = 20 * SECOND
"""Between the two records of the id."""

# -- bugs -----------------------------------------------------------------------------------------------------------------


def beside_it(_: Any) -> Any:
    return lambda _: False


# -- scenarios --------------------------------------------------------------------------------------------------------------


def falls_in_the_middle_of(
    bench: Bench, is_written: Callable[[Put | Delete], bool], *, then: Callable[[], None]
) -> None:
    """Of the next batch of messages a part lands; its sender hears nothing any more."""

    def act(ask: Ask) -> None:
        assert isinstance(ask.effect, Write)
        bench.store.write([each for each in ask.effect.batch.actions if is_written(each)])
        then()
        bench.crash()

    bench._rules.append(Rule(a_batch("messages"), 1, act))


def judged(bench: Bench) -> Iterable[str]:
    """The message comes once, not before the instant that its record has, and at one instant."""
    found = [(each.at, parse_instant(each.headers["tidegate-nominal"])) for each in bench.on("out")]
    if not found:
        yield "I1: a message of two records was not delivered"
    if any(at < nominal for at, nominal in found):
        yield f"I3: a message of two records was delivered before its time: {found}"
    if max((at for at, _ in found), default=0) - min((at for at, _ in found), default=0) > 5 * SECOND:
        yield f"I8: a message of two records was delivered at two instants: {found}"


def a_timer_row_is_all_that_a_record_leaves(*, is_earlier: bool, after: str, falls_again: bool) -> Iterable[str]:
    """An owner falls when the timer row has come of all that it writes at once for a record's message, or nothing has. Another record of
    that id came through the inbox, which the next owner deals with first: that is the message. Then it reads the first one, as a repeat.

    Args:
        is_earlier: The record of the inbox was appended before the other one.
        after: How long after its record each is due.
        falls_again: The next owner falls as well, between the two instants, with what it sent behind its position.
    """
    bench = Bench(shards=1)
    bench.run(2 * AGO)
    document = a_send("m-1", after=after)
    asked_at = bench.now + (-AGO if is_earlier else AGO)
    falls_in_the_middle_of(
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
    yield from judged(bench)


def an_early_half_wakes_a_message_too_soon() -> Iterable[str]:
    return a_timer_row_is_all_that_a_record_leaves(is_earlier=False, after="5m", falls_again=False)


def a_half_in_memory_wakes_a_message_once_more() -> Iterable[str]:
    return a_timer_row_is_all_that_a_record_leaves(is_earlier=True, after="1m", falls_again=True)


RULES_OF_HALVES = (
    Mutant(
        "half of another record",
        "the timer row of a record that came to nothing wakes the message of another record of its id, before its time",
        breaks="I3",
        patches=(Patch(sending, "_is_written_behind_its_message", beside_it),),
        scenario=an_early_half_wakes_a_message_too_soon,
    ),
    Mutant(
        "half of another record, once more",
        "the timer row of a record that came to nothing wakes the message of another record of its id, which was sent before",
        breaks="I8",
        patches=(Patch(sending, "_is_written_behind_its_message", beside_it),),
        scenario=a_half_in_memory_wakes_a_message_once_more,
    ),
)
