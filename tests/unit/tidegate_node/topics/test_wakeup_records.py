"""Records on the pokes topic: what is written is read, what is not ours is passed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.rows.effects import WakeUp
from tidegate_node.node_identity import NodeFacts
from tidegate_node.topics.wakeup_records import RECORD_BYTES_MAX, Beat, beat_record, poke_record, read_record

FIELDS = st.sampled_from(["shard", "run", "beat", "owner", "at", "store_ok_ms"])
NEARLY_OURS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=6),
    max_leaves=9,
).map(lambda document: json.dumps(document).encode())
"""JSON with the right names in the wrong places and of the wrong types: bytes drawn blindly are hardly ever JSON."""


@pytest.mark.parametrize("poke", [WakeUp(7), WakeUp(7, "0007-abcdefghijklmnopqrstuvwxyz"), WakeUp(7, controls=True)])
def test_given_a_poke_then_its_holder_reads_it(facts: NodeFacts, poke: WakeUp) -> None:
    record = poke_record(poke, facts)

    assert read_record(record.value) == Woken(poke.shard, poke.run_id, poke.controls)
    assert record.topic_partition in facts.pokes_of(facts.holder_of(poke.shard))
    assert not record.guarded


def test_given_what_an_api_process_writes_then_it_is_a_poke() -> None:
    assert read_record(b'{"shard": 7, "run": "0007-x"}') == Woken(7, "0007-x")


def test_given_a_beat_then_it_is_read_back(facts: NodeFacts) -> None:
    beat = Beat("owner", 1_763_676_000_000, 12)

    record = beat_record(beat, facts, 3)

    assert (record.topic_partition, read_record(record.value)) == (3, beat)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\xff",
        b"[]",
        b"7",
        b'{"shard": "7"}',
        b'{"beat": {"owner": 1}}',
        b'{"shard": 1, "pad": "' + b"x" * 2_000 + b'"}',
        pytest.param(b"[" * RECORD_BYTES_MAX, id="deeper than the reader goes"),
    ],
)
def test_given_what_is_not_ours_then_it_is_passed(value: bytes | None) -> None:
    assert read_record(value) is None


@given(st.binary(max_size=RECORD_BYTES_MAX + 1) | NEARLY_OURS)
def test_given_any_bytes_then_reading_never_fails_and_says_what_they_say(value: bytes) -> None:
    match read_record(value):
        case Woken(shard, run_id):
            document = json.loads(value)
            assert document["shard"] == shard
            assert run_id is None or document["run"] == run_id
        case Beat(owner, at, age):
            beat = json.loads(value)["beat"]
            assert (beat["owner"], beat["at"], beat["store_ok_ms"]) == (owner, at, age)
        case nothing:
            assert nothing is None
