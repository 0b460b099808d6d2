"""Store effects: settled as the core says, patient where nothing is known, never for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ConnectTimeoutError

from tests.unit.tidegate_node.conftest import PATIENCE_S, THREADS, until
from tidegate_core.rows.effects import (
    Commit,
    Committed,
    Invalid,
    Items,
    Read,
    ReadRange,
    Refused,
    Unavailable,
    Write,
    Written,
)
from tidegate_core.rows.store_operations import (
    ITEM_BYTES_MAX,
    Applied,
    Batch,
    Condition,
    Delete,
    Item,
    Key,
    Lost,
    Page,
    Put,
    RangeRead,
    RawOutcome,
    Transaction,
)
from tidegate_core.writes.settlement import ATTEMPTS_MAX
from tidegate_dynamo.item_client import ItemsClient
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_node.effects.batch_writes import WRITE_ATTEMPTS_MAX, WRITES_PER_CALL_MAX
from tidegate_node.effects.store_effects import BATCHES_SHARE, READ_ATTEMPTS_MAX
from tidegate_ports.store import PartlyRead, StoreUnavailable

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings

KEY = Key("SH#0001", "LEASE")


def _put(token: str, key: Key = KEY, condition: Condition | None = None) -> Transaction:
    item: Item = {"pk": key.pk, "sk": key.sk, "w": token}
    return Transaction("test", (Put(key, item, condition),), token, key)


ABSENT = Condition("attribute_not_exists(#pk)", {"#pk": "pk"})


class Unreliable:
    """Passes calls on to a store; before that, or after it, something may go wrong."""

    def __init__(self, store: Any, *, lose_before: int = 0, lose_after: int = 0, silent: int = 0) -> None:
        self.store = store
        self.lose_before, self.lose_after, self.silent = lose_before, lose_after, silent
        self.transacts = self.reads = self.writes = 0
        self.unprocessed: Callable[[Sequence[Put | Delete]], Sequence[Put | Delete]] = lambda _: ()

    def transact(self, transaction: Transaction) -> RawOutcome:
        self.transacts += 1
        if self.lose_before:
            self.lose_before -= 1
            return Lost()
        outcome: RawOutcome = self.store.transact(transaction)
        if self.lose_after:
            self.lose_after -= 1
            return Lost()
        return outcome

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        self._read()
        found: Mapping[Key, Item] = self.store.get(keys)
        return found

    def query(self, wanted: RangeRead) -> Page:
        self._read()
        page: Page = self.store.query(wanted)
        return page

    def write(self, actions: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        self.writes += 1
        if self.silent:
            self.silent -= 1
            raise StoreUnavailable("away")
        left = self.unprocessed(actions)
        self.store.write([action for action in actions if action not in left])
        return left

    def _read(self) -> None:
        self.reads += 1
        if self.silent:
            self.silent -= 1
            raise StoreUnavailable("away")


async def test_given_a_store_that_answers_then_transactions_are_settled(around: Surroundings) -> None:
    effects = around.store_effects()

    assert await effects.commit(Commit(_put("one", condition=ABSENT))) == Committed()
    refused = await effects.commit(Commit(_put("two", condition=ABSENT)))

    assert isinstance(refused, Refused)
    assert [key for key, _ in refused.failed] == [KEY]
    assert around.metrics.value("tidegate_transactions_total", name="test", verdict="refused") == 1


async def test_given_a_lost_answer_of_an_applied_transaction_then_it_is_committed(around: Surroundings) -> None:
    store = Unreliable(around.store, lose_after=1)

    assert await around.store_effects(store).commit(Commit(_put("one", condition=ABSENT))) == Committed()
    assert store.transacts == 2


async def test_given_no_answer_at_all_then_nobody_knows_after_a_bounded_number_of_sends(around: Surroundings) -> None:
    store = Unreliable(around.store, lose_before=1_000)

    verdict = await around.store_effects(store).commit(Commit(_put("one")))

    assert isinstance(verdict, Unavailable)
    assert store.transacts == ATTEMPTS_MAX


async def test_given_an_unknown_fate_when_it_is_sent_again_then_its_own_success_is_recognised(
    around: Surroundings,
) -> None:
    other = Key("SH#0001", "OTHER")
    around.store.transact(_put("seed", other))
    transaction = Transaction(
        "test",
        (*_put("one", condition=ABSENT).actions, Put(other, {"pk": other.pk, "sk": other.sk, "w": "one"}, None)),
        "one",
        other,
    )
    store = Unreliable(around.store, lose_after=ATTEMPTS_MAX)
    effects = around.store_effects(store)
    assert isinstance(await effects.commit(Commit(transaction)), Unavailable)

    assert await effects.commit(Commit(transaction)) == Committed()


async def test_given_a_silent_store_then_reads_are_repeated_and_then_given_up(around: Surroundings) -> None:
    around.store.transact(_put("one"))
    store = Unreliable(around.store, silent=READ_ATTEMPTS_MAX - 1)
    effects = around.store_effects(store)

    found = await effects.read(Read((KEY,)))
    assert isinstance(found, Items)
    assert set(found.found) == {KEY}
    page = await effects.read_range(ReadRange(RangeRead("SH#0001", "A", "Z")))
    assert isinstance(page, Page)
    assert len(page.items) == 1
    store.silent = READ_ATTEMPTS_MAX
    assert isinstance(await effects.read(Read((KEY,))), Unavailable)


async def test_given_a_large_batch_then_it_is_written_in_chunks_until_nothing_is_left(around: Surroundings) -> None:
    puts = tuple(
        Put(key, {"pk": key.pk, "sk": key.sk}) for key in (Key("SH#0001", f"M#{number:03d}") for number in range(120))
    )
    store = Unreliable(around.store)
    store.unprocessed = lambda actions: actions[: len(actions) // 2]

    assert await around.store_effects(store).write(Write(Batch("messages", puts))) == Written()

    assert len(list(around.store.items("main"))) == 120
    assert store.writes > 120 / WRITES_PER_CALL_MAX


async def test_given_a_store_that_is_too_late_then_the_room_of_batches_is_shown_as_it_narrows_and_grows(
    around: Surroundings,
) -> None:
    store = Unreliable(around.store, silent=1_000)
    effects = around.store_effects(store)
    most = THREADS // BATCHES_SHARE
    assert around.metrics.value("tidegate_store_batch_room") == most > 1
    puts = (Put(KEY, {"pk": KEY.pk, "sk": KEY.sk}), Put(Key("N", "2"), {"pk": "N", "sk": "2"}))

    assert isinstance(await effects.write(Write(Batch("messages", puts))), Unavailable)
    assert around.metrics.value("tidegate_store_batch_room") == 1

    store.silent = 0
    for _ in range(most * most):
        assert await effects.write(Write(Batch("messages", puts))) == Written()
    assert around.metrics.value("tidegate_store_batch_room") == most


async def test_given_a_batch_that_gets_nowhere_then_it_is_given_up(around: Surroundings) -> None:
    store = Unreliable(around.store, silent=1_000)
    put = Put(KEY, {"pk": KEY.pk, "sk": KEY.sk})

    assert isinstance(await around.store_effects(store).write(Write(Batch("messages", (put,)))), Unavailable)
    assert store.writes == WRITE_ATTEMPTS_MAX


async def test_given_answers_then_it_is_known_when_the_store_last_answered(around: Surroundings) -> None:
    store = Unreliable(around.store, lose_before=1_000, silent=0)
    effects = around.store_effects(store)
    begun = effects.answered_at_ms
    around.clock.pass_ms(5_000)
    await effects.commit(Commit(_put("one")))
    assert effects.answered_at_ms == begun

    await effects.read(Read((KEY,)))

    assert effects.answered_at_ms == begun + 5_000


async def test_given_a_transaction_that_can_never_work_then_its_author_is_told(around: Surroundings) -> None:
    broken = Transaction("test", (Put(KEY, {"pk": KEY.pk, "sk": KEY.sk, "w": "t"}, Condition("((", {}, {})),), "t", KEY)
    verdict = await around.store_effects().commit(Commit(broken))
    assert isinstance(verdict, Invalid)
    assert "LEASE" in verdict.message
    assert around.metrics.value("tidegate_transactions_total", name="test", verdict="invalid") == 1
    assert Applied() == around.store.transact(_put("after"))


async def test_given_a_batch_that_can_never_work_then_its_author_is_told_and_the_other_chunks_are_written(
    around: Surroundings,
) -> None:
    """An item above DynamoDB's 400 KB raised through the driver, and ended holder after holder of its topic partition."""
    keys = [Key("SH#0001", f"M#{number:03d}") for number in range(WRITES_PER_CALL_MAX + 1)]
    huge = "x" * (ITEM_BYTES_MAX + 1)
    puts = tuple(Put(key, {"pk": key.pk, "sk": key.sk, **({"v": huge} if key is keys[0] else {})}) for key in keys)

    answer = await around.store_effects().write(Write(Batch("messages", puts)))

    assert isinstance(answer, Invalid)
    assert around.store.get(keys).keys() == {keys[-1]}


async def test_given_a_key_that_no_item_can_have_then_the_reader_is_told(around: Surroundings) -> None:
    key = Key("SH#0001", "x" * 2_000)

    assert isinstance(await around.store_effects().read(Read((key,))), Invalid)


async def test_given_batches_that_the_store_does_not_answer_then_reads_and_transactions_find_a_thread(
    around: Surroundings,
) -> None:
    """They prove and move what a shard owns: behind batches that wait for their time-out its requests would stand still."""
    answers = threading.Event()

    def answered_late(_: object) -> tuple[()]:
        answers.wait(PATIENCE_S)
        return ()

    store = Unreliable(around.store)
    store.unprocessed = answered_late
    effects = around.store_effects(store)
    puts = tuple(Put(key, {"pk": key.pk, "sk": key.sk}) for key in (Key("SH#0001", f"M#{n}") for n in range(200)))
    batches = [asyncio.create_task(effects.write(Write(Batch("messages", puts)))) for _ in range(4)]
    try:
        await until(lambda: store.writes == THREADS // 2, "batches have all the room that is theirs")
        async with asyncio.timeout(PATIENCE_S / 2):
            assert await effects.commit(Commit(_put("one"))) == Committed()
            assert isinstance(await effects.read(Read((KEY,))), Items)
        assert store.writes == THREADS // 2
    finally:
        answers.set()
    assert await asyncio.gather(*batches) == [Written()] * 4


async def test_given_an_answer_about_some_keys_only_then_the_store_has_answered(around: Surroundings) -> None:
    """Else a node of which one key is throttled looks as if it did not reach the store."""

    class Throttled(Unreliable):
        unread: Sequence[Key] = ()

        def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
            raise PartlyRead("throttled", {}, self.unread)

    store = Throttled(around.store)
    effects = around.store_effects(store)
    begun = effects.answered_at_ms
    around.clock.pass_ms(5_000)
    other = Key("SH#0002", "LEASE")
    store.unread = (KEY, other)
    assert isinstance(await effects.read(Read((KEY, other))), Unavailable)
    assert effects.answered_at_ms == begun

    store.unread = (KEY,)
    assert isinstance(await effects.read(Read((KEY, other))), Unavailable)
    assert effects.answered_at_ms == begun + 5_000


class Unreached(ItemsClient):
    """To whose store no connection comes about."""

    def __init__(self) -> None:
        """Needs none of what a client is made of."""

    def call(self, operation: str, request: object) -> Any:
        raise ConnectTimeoutError(endpoint_url="https://dynamodb/")


async def test_given_a_store_to_which_nothing_connects_then_it_has_not_answered(around: Surroundings) -> None:
    """Else a node without a way to it looks as if it were served well, and keeps what others could serve."""
    effects = around.store_effects(DynamoStore(Unreached(), DynamoSettings()))
    begun = effects.answered_at_ms
    around.clock.pass_ms(25_000)
    row = Put(KEY, {"pk": KEY.pk, "sk": KEY.sk})
    assert isinstance(await effects.write(Write(Batch("seen", (row,)))), Unavailable)
    assert isinstance(await effects.commit(Commit(_put("t"))), Unavailable)
    assert effects.answered_at_ms == begun


async def test_given_a_refusal_by_its_condition_then_the_store_has_answered(around: Surroundings) -> None:
    effects = around.store_effects()
    await effects.commit(Commit(_put("t")))
    around.clock.pass_ms(25_000)
    assert isinstance(await effects.commit(Commit(_put("u", condition=ABSENT))), Refused)
    assert effects.answered_at_ms == around.clock.monotonic_ms()
