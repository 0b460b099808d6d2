"""What must be true before a node serves: refusals say what to do, silence is asked again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.rows.effects import Unavailable
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.keys import SCHEMA_KEY
from tidegate_core.rows.schema_version import FIRST, NEWEST, OLDEST, StoreSchema
from tidegate_core.rows.store_operations import Delete, Item, Key, Put
from tidegate_core.writes.partition_map import ClusterMap, Cut, put_first_map
from tidegate_node.settings import NodeSettings
from tidegate_node.startup_checks import (
    Difference,
    NotYet,
    StartRefused,
    TopicNames,
    gate_secret,
    node_facts,
    patiently,
)
from tidegate_ports.bus import Topic
from tidegate_ports.store import StoreRequestInvalid, StoreUnavailable

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings

NAMES = TopicNames("r", "e", "p", "receipts", "runs", "r.dlq", "e.dlq", "runs.dlq")
REQUESTS = TopicFacts("r", "ab" * 16, 4)


@dataclasses.dataclass
class Inspected:
    """Bricks as a test wants them."""

    around: Surroundings
    table_differences: Sequence[Difference] = ()
    topic_differences: Sequence[Difference] = ()
    failure: Exception | None = None

    def tables(self) -> Sequence[Difference]:
        return self.table_differences

    def topics(self) -> Sequence[Difference]:
        return self.topic_differences

    def items(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        if self.failure is not None:
            raise self.failure
        return self.around.store.get(keys)


def _write_map(around: Surroundings, **changed: Any) -> None:
    first = dataclasses.replace(ClusterMap.first(8, REQUESTS, "cluster"), **changed)
    around.store.transact(put_first_map(first, "t"))


async def _facts(around: Surroundings, inspector: Inspected) -> Any:
    return await node_facts(NodeSettings(node="n"), NAMES, inspector, around.bus, around.notes)


async def test_given_all_is_as_it_should_be_then_the_facts_are_known(around: Surroundings) -> None:
    _write_map(around)

    facts = await _facts(around, Inspected(around))

    assert facts.cluster.shards == 8
    assert (facts.requests, facts.events.name, facts.requests_dlq) == (REQUESTS, "e", "r.dlq")
    holding = facts.holding(1, 3)
    assert (holding.owner, holding.tenure, list(holding.owned_shards())) == (facts.owner, 3, [1, 5])


async def test_given_two_processes_then_they_have_two_owners(around: Surroundings) -> None:
    _write_map(around)

    owners = {(await _facts(around, Inspected(around))).owner for _ in range(2)}

    assert len(owners) == 2


async def test_given_no_map_then_it_is_refused_with_what_to_do(around: Surroundings) -> None:
    with pytest.raises(StartRefused, match="tidegate init"):
        await _facts(around, Inspected(around))


@pytest.mark.parametrize(
    "changed",
    [{"cluster_id": "other"}, {"topic_partitions": 8, "history": (Cut(1, 8, REQUESTS.id),)}],
)
async def test_given_a_map_of_something_else_then_it_is_refused(around: Surroundings, changed: dict[str, Any]) -> None:
    _write_map(around, **changed)

    with pytest.raises(StartRefused):
        await _facts(around, Inspected(around))


async def test_given_a_requests_topic_that_is_not_the_maps_then_the_node_starts_as_the_map_says(
    around: Surroundings,
) -> None:
    """It was made anew: nothing of it is read before the map has followed (`map_watch`)."""
    _write_map(around, topic_id="cd" * 16)
    assert (await _facts(around, Inspected(around))).requests == dataclasses.replace(REQUESTS, id="cd" * 16)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        pytest.param(StoreSchema(writes=NEWEST + 1), "run the newer release", id="newer"),
        pytest.param(StoreSchema(writes=NEWEST, closing=NEWEST + 1), "run the newer release", id="about to be newer"),
        pytest.param(StoreSchema(rows_from=OLDEST - 1), "tidegate migrate --finish", id="older"),
    ],
)
async def test_given_rows_that_it_cannot_read_then_it_is_refused_with_what_to_do(
    around: Surroundings, schema: StoreSchema, said: str
) -> None:
    _write_map(around)
    around.store.write([Put(SCHEMA_KEY, to_item(schema, SCHEMA_KEY))])

    with pytest.raises(StartRefused, match=said):
        await _facts(around, Inspected(around))


async def test_given_a_new_cluster_then_the_newest_version_is_written_and_an_older_store_keeps_its_own(
    around: Surroundings,
) -> None:
    _write_map(around)
    assert (await _facts(around, Inspected(around))).holding(0, 1).writes == NEWEST

    around.store.write([Delete(SCHEMA_KEY)])  # As a release leaves it that knows of no versions.
    assert (await _facts(around, Inspected(around))).holding(0, 1).writes == FIRST


@pytest.mark.parametrize("in_tables", [True, False])
async def test_given_an_unsafe_difference_then_it_is_refused_and_a_safe_one_is_said(
    around: Surroundings, in_tables: bool
) -> None:
    _write_map(around)

    def with_differences(found: Sequence[Difference]) -> Inspected:
        return Inspected(around, found, ()) if in_tables else Inspected(around, (), found)

    difference = Difference("topic e: message.timestamp.type is CreateTime", unsafe=True)
    with pytest.raises(StartRefused, match="CreateTime"):
        await _facts(around, with_differences([difference]))

    await _facts(around, with_differences([dataclasses.replace(difference, unsafe=False)]))

    assert around.notes.said == [("topic_differs", {"message": difference.text})]


@pytest.mark.parametrize(
    ("failure", "answer"),
    [(StoreUnavailable("away"), NotYet), (StoreRequestInvalid("no such table"), StartRefused)],
)
async def test_given_a_store_that_does_not_read_then_the_answer_says_whether_to_wait(
    around: Surroundings, failure: Exception, answer: type[Exception]
) -> None:
    with pytest.raises(answer):
        await _facts(around, Inspected(around, failure=failure))


async def test_given_missing_topics_then_it_is_refused(around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_map(around)

    async def describe(names: Sequence[str]) -> Mapping[str, Topic]:
        return {}

    monkeypatch.setattr(around.bus, "describe", describe, raising=False)

    with pytest.raises(StartRefused, match="topics r, e, p do not exist"):
        await _facts(around, Inspected(around))


async def test_given_brokers_that_are_silent_then_it_is_not_yet(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_map(around)

    async def describe(names: Sequence[str]) -> Unavailable:
        return Unavailable("broker")

    monkeypatch.setattr(around.bus, "describe", describe, raising=False)

    with pytest.raises(NotYet, match="broker"):
        await _facts(around, Inspected(around))


async def test_given_silence_that_passes_then_it_is_asked_until_there_is_an_answer(around: Surroundings) -> None:
    tries = 0

    async def work() -> str:
        nonlocal tries
        tries += 1
        around.clock.pass_ms(1_000)
        if tries < 4:
            raise NotYet("away")
        return "there"

    assert await patiently(work, 60, around.clock, around.notes, pause_s=0) == "there"
    assert around.notes.names() == ["waiting_for"] * 3


async def test_given_silence_that_lasts_then_patience_ends(around: Surroundings) -> None:
    async def work() -> None:
        around.clock.pass_ms(1_000)
        raise NotYet("away")

    with pytest.raises(NotYet):
        await patiently(work, 5, around.clock, around.notes, pause_s=0)

    assert len(around.notes.said) == 4


def test_given_a_secret_then_it_is_read_without_its_line_end(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"x" * 32 + b"\n")

    assert gate_secret(file) == b"x" * 32


def test_given_no_usable_secret_then_it_is_refused(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(b"x" * 31 + b"\n")

    for file, said in ((None, "is not set"), (tmp_path / "none", "cannot be read"), (short, "holds 31 characters")):
        with pytest.raises(StartRefused, match=said):
            gate_secret(file)
