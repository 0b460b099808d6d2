"""A definition that this release cannot read: its own schedule stands aside, and nobody else with it."""

from __future__ import annotations

import json

from tests.support.builders import MINUTE, SECOND, a_spec, all_of, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.rows.store_operations import Key, Put


def test_given_one_among_due_time_outs_then_those_of_the_others_are_decided() -> None:
    """Found in review: all that are due wait together for what is in the logs, and fell together with the one that could not be read."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=None), shards=1)
    bench.run(SECOND)
    for name in ("sound", "strange"):
        bench.request(an_apply(a_spec(name, all_of(on_data("a"), on_data("b"), timeout="1m")), name))
    bench.run(5 * SECOND)
    bench.event(an_event("d1", "a"))
    bench.run(SECOND)
    (row,) = bench.rows("DEF#flights/strange")
    spec = json.loads(str(row["spec"]))
    spec["trigger"]["of_a_later_release"] = True
    bench.store.write([Put(Key(str(row["pk"]), str(row["sk"])), {**row, "spec": json.dumps(spec)})])
    bench.crash()
    bench.run(10 * MINUTE)
    assert [str(row["sk"]).split("#")[1] for row in bench.rows("E#")] == ["flights/strange"]
    assert {notice.fields["name"] for notice in bench.notices("decision_failed")} >= {"watermark"}
