"""A request that comes while a fire of its schedule is on its way: sent under one version, whichever (I8)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_recurring, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit, a_produce
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.rows.effects import Effect, Read

DUE = NOW + 20 * SECOND
AT = {"type": "at", "instant": format_instant(DUE)}


def a_read_of_a_definition(effect: Effect) -> bool:
    return isinstance(effect, Read) and any(key.sk.startswith("M#") for key in effect.keys)


@pytest.mark.parametrize(
    ("trigger", "late_ms", "read_ms", "acknowledged_ms", "decided_ms"),
    [
        (every("10s"), 0, 50, 0, 0),
        (AT, 100, 3_500, 0, 200),
        (AT, 10, 1_500, 2_400, 0),
    ],
    ids=["in the same millisecond", "its payload is read behind the hold's patience", "and the broker is slow"],
)
def test_given_a_fire_that_was_taken_and_not_handed_over_when_an_update_comes_then_it_is_sent_under_one_version(
    trigger: dict[str, Any], late_ms: int, read_ms: int, acknowledged_ms: int, decided_ms: int
) -> None:
    """Found by a review: it was sent by both, or by the older one last.

    Args:
        trigger: One instant is `DUE`: its fire waits for its definition, which the owner has to read first.
        late_ms: How long after `DUE` the update comes.
        read_ms: How long after that the definition is there.
        acknowledged_ms: How long the broker takes for what is handed over.
        decided_ms: How long after the read the store takes the request's transaction.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=trigger, payload="old")))
    bench.run(DUE - SECOND // 2 - bench.now)
    bench.hold_back(a_read_of_a_definition, times=2)  # Ahead of time, and when it is due.
    bench.crash()
    bench.run(DUE + late_ms - bench.now)
    reads = list(bench._held)
    bench._held.clear()
    if decided_ms:
        bench.hold_back(a_commit("control"))
    if acknowledged_ms:
        bench.hold_back(a_produce("out"))
    bench.request(an_apply(a_recurring(trigger=trigger, payload="new"), "update"))
    bench.run(read_ms)
    for answer in reads:
        answer()
    bench.settle()
    bench.run(acknowledged_ms + decided_ms)
    bench.as_usual()
    bench.run(20 * SECOND)
    nominals = [parse_instant(sent.headers["tidegate-nominal"]) for sent in bench.on("out")]
    assert DUE in nominals, "I1: a fire was not sent, by neither of two versions"
    assert len(set(nominals)) == len(nominals), "I8: a fire was sent under two versions"
