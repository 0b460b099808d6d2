"""Rules of requests of which one record goes with its topic and another one outlives it in the inbox (docs/protocol.md), each switched
off in the interleaving that it is against.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.simulation.mutants.ingest.partition_growth import of_another_topic
from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import comes_through_the_inbox
from tests.support.builders import MINUTE, SECOND, a_send
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_batch, a_commit
from tidegate_core.decisions.delivery_plane import creates, sending
from tidegate_core.decisions.delivery_plane.creates import Create
from tidegate_core.decisions.delivery_plane.inboxed import Inboxed
from tidegate_core.decisions.inputs import Poked
from tidegate_core.decisions.operations import Operation
from tidegate_core.model.shards import message_shard

SHARDS = 4
ASKED_AGAIN = "asked again"
REQUEST = a_send(ASKED_AGAIN, key="k", after="15s")
SHARD = message_shard("orders", "k", ASKED_AGAIN, SHARDS)

# -- bugs -----------------------------------------------------------------------------------------------------------------


def gone_at_once(_: Any) -> Any:
    return lambda inboxed, repeat: False


def refused_at_once(original: Any) -> Any:
    def leans(inboxed: Inboxed, repeat: Create) -> bool:
        original(inboxed, repeat)
        return False

    return leans


def for_nobody(_: Any) -> Any:
    def stand_in(plane: object, create: Create) -> Operation[None]:
        yield from ()

    return stand_in


def on_rows_alone(original: Callable[[Create], None]) -> Any:
    def judge(create: Create) -> None:
        original(create)
        if create.is_answered_elsewhere:
            create.leans_on = None

    return judge


# -- scenarios --------------------------------------------------------------------------------------------------------------


def a_bench_whose_position_stands_still() -> Bench:
    bench = Bench(shards=SHARDS)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    return bench


def sent_once(bench: Bench, copies: int) -> Iterable[str]:
    found = [json.loads(each)["of"] for each in bench.delivered()].count(ASKED_AGAIN)
    if not found:
        yield f"I1: a request of {copies} records was not delivered"
    if found > 1:
        yield f"I8: a request of {copies} records was delivered {found} times"


def a_repeat_outlives_the_topic_of_the_first_record(copies: int) -> Iterable[str]:
    """The first one is in the owner's topic partition, which has not moved its position when the topic is made anew; repeats came
    through the inbox, from one that has. The first of them is the request now, and the others are its repeats.
    """
    bench = a_bench_whose_position_stands_still()
    bench.request(REQUEST)
    for number in range(copies):
        comes_through_the_inbox(bench, REQUEST, bench.now + 1, SHARD, number)
    bench.give(Poked(SHARD))
    bench.run(SECOND)
    of_another_topic(bench, 2)
    bench.run(MINUTE)
    yield from sent_once(bench, copies + 1)


def a_repeat_outlives_the_first_record() -> Iterable[str]:
    return a_repeat_outlives_the_topic_of_the_first_record(1)


def two_repeats_outlive_the_first_record() -> Iterable[str]:
    return a_repeat_outlives_the_topic_of_the_first_record(2)


def a_first_record_outlives_its_repeat(*, is_looked_at: bool) -> Iterable[str]:
    """It comes through the inbox, later than a repeat in the owner's topic partition, which has raised the guard for a replacement. That
    one's topic is made anew before its position is moved: what was passed is the request, in its place.

    Args:
        is_looked_at: An owner in between meets it behind the guard, before the rows of what has raised that are written.
    """
    bench = Bench(shards=SHARDS)
    bench.run(SECOND)
    first = bench.now
    bench.request(a_send("replaced", key="k", after="10s"))
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.hold_back(a_batch("messages"))
    bench.request(REQUEST)
    comes_through_the_inbox(bench, REQUEST, first, SHARD)
    if is_looked_at:
        bench.hold_back(a_commit("cursor"))
        bench.crash()
        bench.run(SECOND)
    of_another_topic(bench, 2)
    bench.release()
    bench.run(MINUTE)
    yield from sent_once(bench, 2)
    if len(bench.delivered()) > 1:
        yield f"I5: {bench.delivered()} were sent, of a message and its replacement"


def a_first_record_outlives_its_repeat_unseen() -> Iterable[str]:
    return a_first_record_outlives_its_repeat(is_looked_at=False)


def a_first_record_outlives_its_repeat_seen_before() -> Iterable[str]:
    return a_first_record_outlives_its_repeat(is_looked_at=True)


RULES_OF_GONE_RECORDS = (
    Mutant(
        "repeats gone at once",
        "a repeat leaves the inbox before the record that it repeats is passed, and that one goes with its topic",
        breaks="I1",
        patches=(Patch(Inboxed, "leans", gone_at_once),),
        scenario=a_repeat_outlives_the_first_record,
    ),
    Mutant(
        "repeats refused at once",
        "a guard refuses a repeat for good that becomes the first record of its request: the next repeat does not see it",
        breaks="I8",
        patches=(Patch(Inboxed, "leans", refused_at_once),),
        scenario=two_repeats_outlive_the_first_record,
    ),
    Mutant(
        "nobody stands in",
        "a guard outlives the replacement that raised it and went with its topic, and covers the record of it that did not",
        breaks="I1",
        patches=(Patch(creates, "_stand_in", for_nobody),),
        scenario=a_first_record_outlives_its_repeat_unseen,
    ),
    Mutant(
        "leaning on rows alone",
        "a record leaves the inbox for a repeat of which there is a guard and nothing else yet, and that one goes with its topic",
        breaks="I1",
        patches=(Patch(sending, "judge", on_rows_alone),),
        scenario=a_first_record_outlives_its_repeat_seen_before,
    ),
)
