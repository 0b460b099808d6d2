"""Rules of what else a hand-over waits for (docs/protocol.md, A message's life): the fact of an outage that opens amid it, and rows that are
loaded amid it. Each is switched off in the interleaving that it is against.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.ownership.hand_overs import jobs_read, repeats_of_the_next_owner
from tests.support.builders import REQUESTS, REQUESTS_ID, SECOND, Doc, a_recurring, a_send, an_apply, every
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_commit, a_produce
from tidegate_core.decisions.delivery_plane import inboxed, loading
from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane
from tidegate_core.decisions.shard_actor import ShardActor
from tidegate_core.effects import Commit, Effect, NotProduced, Read, ReadRange, Write
from tidegate_core.model.position import Position
from tidegate_core.records.codec import to_item
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store.values import Put

EVERY_TIME = 10**9
ONE_BY_ONE = Patch(inboxed, "INBOXED_TOGETHER_MAX", lambda _: 1)
"""What a look at the inbox takes together."""

# -- bugs -----------------------------------------------------------------------------------------------------------------


def behind_requests_alone(_: Any) -> Any:
    return lambda plane: plane.slots.holds_position


def of_what_is_loaded(waits_for_the_log: property) -> Any:
    def waits(plane: DeliveryPlane) -> bool:
        return not plane._is_sent_ahead() and bool(waits_for_the_log.fget and waits_for_the_log.fget(plane))

    return property(waits)


OF_WHAT_IS_LOADED = Patch(DeliveryPlane, "waits_for_the_log", of_what_is_loaded)


def in_the_lane_alone(write: Callable[[ShardActor], None]) -> Any:
    def written(actor: ShardActor) -> None:
        if not actor.is_draining:
            write(actor)

    return written


# -- scenarios --------------------------------------------------------------------------------------------------------------


def to_the_store(effect: Effect) -> bool:
    return isinstance(effect, Commit | Write | Read | ReadRange)


def reading_of_rows(*, but_first: int = 0) -> Callable[[Effect], bool]:
    reads = itertools.count(1)
    return lambda effect: isinstance(effect, ReadRange) and effect.range.low == "D#" and next(reads) > but_first


def a_bench(step: str) -> Bench:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every(step))))
    return bench


def inboxed_row(document: Doc, at: int) -> Put:
    """A request that another holder, of topic partition 7, has read and passed."""
    origin = Position(at, REQUESTS_ID, 7, 1).text()
    row = InboxRow(namespace="orders", name="x", kind="M", origin=origin, body=json.dumps(document))
    return Put(row.key(0), to_item(row, row.key(0)))


def a_silence_becomes_an_outage_while_what_is_left_is_sent() -> Iterable[str]:
    """A fire gets no acknowledgement, and stands before a message that was sent."""
    bench = a_bench("10s")
    bench.run(15 * SECOND)
    bench.answer_with(a_produce("out"), NotProduced("unavailable", "no leader"), times=EVERY_TIME)
    bench.run(10 * SECOND)
    bench.request(a_send("m-1", after="0s", topic="elsewhere"))
    bench.run(SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.lose(to_the_store, times=EVERY_TIME)
    bench.run(65 * SECOND)
    bench.as_usual()
    bench.run(5 * SECOND)
    return repeats_of_the_next_owner(bench)


def a_silence_becomes_an_outage_amid_a_hand_over() -> Iterable[str]:
    bench = a_bench("10s")
    bench.run(25 * SECOND)
    bench.lose(to_the_store, times=EVERY_TIME)
    bench.run(57 * SECOND)
    bench.drain()
    bench.run(6 * SECOND)
    bench.as_usual()
    bench.run(30 * SECOND)
    if not bench.actor.has_ended:
        yield "liveness: a hand-over waits for the fact of an outage that nobody writes down"


def a_row_of_the_log_is_loaded_amid_a_hand_over() -> Iterable[str]:
    """It stands before fires that were sent, and waits for a create that is read again only then."""
    bench = a_bench("2s")
    bench.lose(a_commit("cursor"), times=1_000)
    bench.append(REQUESTS, 0, a_send("m-1", after="3s", topic="elsewhere"))
    bench.run(50)
    bench.as_usual()
    bench.new_actor()
    bench.hold_back(jobs_read, times=1_000)
    bench.hold_back(reading_of_rows(but_first=1))
    bench.run(10 * SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.release_last()
    bench.run(SECOND)
    return repeats_of_the_next_owner(bench)


RULES_OF_HAND_OVERS = (
    Mutant(
        "late fires among what is left",
        "a fire that waits for the fact of an outage is left by a hand-over, and what was sent behind it is sent again",
        breaks="I8",
        patches=(Patch(DeliveryPlane, "_holds_fires_up", behind_requests_alone),),
        scenario=a_silence_becomes_an_outage_while_what_is_left_is_sent,
    ),
    Mutant(
        "fact behind a closed lane",
        "a silence that becomes an outage amid a hand-over is written down by nobody, and late fires wait for that",
        breaks="liveness",
        patches=(Patch(ShardActor, "_have_outage_written", in_the_lane_alone),),
        beside=(OF_WHAT_IS_LOADED,),
        scenario=a_silence_becomes_an_outage_amid_a_hand_over,
    ),
    Mutant(
        "log left before all is loaded",
        "a row that waits for the log is loaded amid a hand-over that reads no more: what was sent behind it is sent again",
        breaks="I8",
        patches=(OF_WHAT_IS_LOADED,),
        beside=(Patch(loading, "WINDOW_MS", lambda _: 2 * SECOND),),
        scenario=a_row_of_the_log_is_loaded_amid_a_hand_over,
    ),
)
