"""Recurring messages are held against their topic up to the very ends of wide suspends; what is held back is no loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from tidegate_core.audit.facts import Window
from tidegate_core.audit.findings import Findings
from tidegate_core.audit.messages import MessageFacts
from tidegate_core.audit.sink import MAY_BE_DROPPED, OnTopics, SinkFacts, judge_sink
from tidegate_core.records.controls import Controls, Scope
from tidegate_core.records.recurring import HeldSeries, Interval
from tidegate_testkit.builders import MINUTE, NOW, SECOND, a_position

REF = "flights/ping"
BEGUN, ENDED = NOW + MINUTE, NOW + 2 * MINUTE


def judged(window: Window, held: Mapping[str, HeldSeries] | None = None) -> Findings:
    trigger = json.dumps({"type": "every", "period": "10s", "phase": "0s"})
    interval = Interval(
        generation=1, version=1, incarnation="i", origin="o", begin=NOW, since=NOW, trigger=trigger, size=1
    )
    scope = Scope(namespace="flights", position=a_position(1).text(), spans=((BEGUN, ENDED),), dropped=1)
    messages = MessageFacts(
        shard=0, position=(NOW + 10 * MINUTE, "", ""), intervals=[(REF, interval)], held_series=held or {}
    )
    facts = SinkFacts(messages, Controls(version=2, scopes=(scope,)), {(REF, 1): "out"})
    return judge_sink(facts, window, OnTopics({}))


def test_given_a_fire_right_behind_a_wide_suspend_that_is_not_on_its_topic_then_it_is_lost() -> None:
    found = judged(Window(ENDED, ENDED + 10 * SECOND))
    assert [each.kind for each in found.differences] == ["message_lost"] * found.counts["missing"]
    assert found.counts["missing"] >= 1
    assert found.unjudged == []


def test_given_one_before_its_end_then_it_may_have_been_dropped() -> None:
    found = judged(Window(NOW, BEGUN - SECOND))
    assert found.differences == []
    assert {each.why for each in found.unjudged} == {MAY_BE_DROPPED}


def test_given_its_shard_holds_it_back_still_then_the_shard_is_behind() -> None:
    held = HeldSeries(namespace="flights", name="ping", generation=1, slot=BEGUN)
    window = Window(ENDED, ENDED + 10 * SECOND)
    found = judged(window, {REF: held})
    assert found.differences == []
    assert found.counts["pending"] == len(found.behind) >= 1
    assert judged(window, {REF: replace(held, generation=2)}).differences != []
