"""What an owner has sent behind its shard's durable position (I8): the judges excuse by it who waits for a checkpoint, and nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.checks.case import Case
from tests.simulation.checks.repeat_bound import SENT_BEHIND, is_at_bound
from tests.simulation.world.observations import Try
from tests.simulation.world.timeline import START
from tidegate_core.messages.wire.checkpoints import CHECKPOINT_AFTER_MS
from tidegate_core.rows import keys

SHARD = 1
MOST = 3
SENT_AT = START + 1_000
BOUND_AT = SENT_AT + CHECKPOINT_AFTER_MS


def test_given_a_world_at_rest_then_each_shard_s_last_position_is_that_of_its_store(case: Case) -> None:
    """Seed 37013397: it was looked for under another name, so that whatever an owner had ever sent lay behind its position."""
    memory = case.world.cluster.store.memory
    held = {shard: (memory.look(keys.progress(shard)) or {}).get("fired_slot") for shard in range(case.swarm.shards)}
    moved = {shard: passed[-1][1] for shard, passed in case.record.passed.items() if passed}
    assert moved
    assert moved == {shard: held[shard] for shard in moved}
    assert {int(each.id.split("-")[0]) for each in case.record.deliveries} <= {*moved}


def test_given_a_calm_world_then_each_delivery_was_tried_once_by_who_sent_it(case: Case) -> None:
    tried = {
        (stint, each.at, each.id, each.nominal, each.refused)
        for stint, tries in case.record.tries.items()
        for each in tries
    }
    assert tried == {(each.sent.stint, each.sent.at, each.id, each.nominal, None) for each in case.record.deliveries}


def sent(name: str, *, shard: int = SHARD, at: int = SENT_AT, refused: int | None = None) -> Try:
    return Try(at, f"{shard:04d}-{name}", START, refused)


@pytest.mark.parametrize(
    ("tries", "passed", "waits"),
    [
        pytest.param({"one": [sent("a"), sent("b"), sent("c")]}, [], True, id="as many as may be"),
        pytest.param({"one": [sent("a"), sent("b")]}, [], False, id="one less"),
        pytest.param(
            {"one": [sent("a", refused=SENT_AT), sent("a", refused=SENT_AT), sent("a")]},
            [],
            True,
            id="tries of one that was refused",
        ),
        pytest.param(
            {"one": [sent("a"), sent("b"), sent("c")]}, [(BOUND_AT - 1, START)], False, id="a position behind them"
        ),
    ],
)
def test_given_what_was_sent_behind_the_position_then_its_owner_waits_from_as_much_as_may_be_sent_for_so_long(
    case: Case,
    monkeypatch: pytest.MonkeyPatch,
    tries: dict[str, list[Try]],
    passed: list[tuple[int, int]],
    waits: bool,
) -> None:
    """Seed 37013397: of five, four had been refused; no checkpoint passed a row whose removal from the inbox had no answer."""
    case.swarm = replace(case.swarm, knobs=((SENT_BEHIND, MOST),))
    monkeypatch.setattr(case.record, "tries", tries)
    monkeypatch.setattr(case.record, "passed", {SHARD: passed})
    assert is_at_bound(case, SHARD, SENT_AT, BOUND_AT) is waits
