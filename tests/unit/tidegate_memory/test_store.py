"""What the store in memory offers beyond the port; the port's promises are in `tests/conformance`."""

from collections.abc import Mapping, Sequence

import pytest

from tidegate_core.rows.store_operations import (
    Applied,
    Cancelled,
    Check,
    Condition,
    Delete,
    Item,
    Key,
    Put,
    RangeRead,
    Transaction,
    Update,
    Value,
)
from tidegate_memory.expressions.attribute_types import NESTING_LEVELS_MAX
from tidegate_memory.store import MemoryStore, Usage
from tidegate_ports.store import StoreRequestInvalid

JOB = Key("SH#0001", "J#1")
LEASE = Key("SH#0001", "LEASE")
HOLDS = Condition("epoch = :mine", {}, {":mine": 7})


def item(key: Key, **attributes: str | int) -> Item:
    return {"pk": key.pk, "sk": key.sk, **attributes}


def claim(token: str, load: int = 0) -> Transaction:
    put = Put(JOB, item(JOB, w=token, load="x" * load), Condition("attribute_not_exists(pk)"))
    return Transaction("claim", (Check(LEASE, HOLDS), put), token, JOB)


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.write([Put(LEASE, item(LEASE, epoch=7))])
    return made


def test_given_writes_and_reads_then_units_are_counted_by_name_as_dynamodb_bills_them(store: MemoryStore) -> None:
    store.transact(claim("a", load=3_000))
    store.transact(claim("b"))
    single = Transaction("touch", (Update(JOB, "SET w = :w", {}, {":w": "c"}),), "c", JOB)
    store.transact(single)
    store.get([JOB, LEASE, Key("SH#0001", "ghost")])
    store.query(RangeRead("SH#0001", "A", "Z"))
    assert dict(store.usage) == {
        "batch": Usage(calls=1, units=1),
        # Twice in a transaction: one unit for the check, three for 3 KB; the refused one is billed for what it met.
        "claim": Usage(calls=2, units=2 * (1 + 3) + 2 * (1 + 3)),
        "touch": Usage(calls=1, units=3),
        "get": Usage(calls=1, units=3),
        "query": Usage(calls=1, units=1),
    }


def test_given_a_monitor_then_it_sees_each_applied_write_with_what_was_before(store: MemoryStore) -> None:
    seen: list[tuple[object, Mapping[Key, Item | None]]] = []
    store.on_applied = lambda written, befores: seen.append((written, befores))
    transaction = claim("a")
    assert store.transact(transaction) == Applied()
    assert isinstance(store.transact(claim("b")), Cancelled)
    batch: Sequence[Put | Delete] = (Delete(JOB),)
    store.write(batch)
    assert seen == [
        (transaction, {LEASE: item(LEASE, epoch=7), JOB: None}),
        (batch, {JOB: item(JOB, w="a", load="")}),
    ]


def test_given_a_monitor_that_finds_a_broken_invariant_then_the_writer_hears_of_it(store: MemoryStore) -> None:
    def refuse(_written: object, befores: Mapping[Key, Item | None]) -> None:
        raise AssertionError(f"stale epoch: {befores[LEASE]}")

    store.on_applied = refuse
    with pytest.raises(AssertionError, match="stale epoch"):
        store.transact(claim("a"))


def test_given_tokens_are_forgotten_then_a_repeat_meets_its_own_success() -> None:
    store = MemoryStore(remembers_tokens=False)
    store.write([Put(LEASE, item(LEASE, epoch=7))])
    assert store.transact(claim("a")) == Applied()
    repeated = store.transact(claim("a"))
    assert isinstance(repeated, Cancelled)
    assert [reason.code for reason in repeated.reasons] == ["None", "ConditionalCheckFailed"]


@pytest.mark.parametrize(
    ("actions", "witness"),
    [
        pytest.param((Put(JOB, item(JOB)),), JOB, id="without a token"),
        pytest.param((Put(JOB, item(JOB, w="other")),), JOB, id="another token"),
        pytest.param((Put(JOB, item(JOB, w="mine")),), LEASE, id="an item that is not written"),
        pytest.param((Check(LEASE, HOLDS), Put(JOB, item(JOB, w="mine"))), LEASE, id="an item that is only checked"),
        pytest.param((Delete(JOB),), JOB, id="an item that is deleted"),
    ],
)
def test_given_a_witness_that_does_not_get_the_token_then_the_author_hears_of_it(
    store: MemoryStore, actions: tuple[Put | Check | Delete, ...], witness: Key
) -> None:
    with pytest.raises(StoreRequestInvalid, match=r"witness|token"):
        store.transact(Transaction("odd", actions, "mine", witness))
    assert store.peek(JOB) is None


def test_given_items_then_tests_can_look_at_them_without_being_counted(store: MemoryStore) -> None:
    store.transact(claim("a"))
    before = dict(store.usage)
    assert [found["sk"] for found in store.items()] == ["J#1", "LEASE"]
    assert list(store.items("history")) == []
    assert store.peek(JOB) == item(JOB, w="a", load="")
    assert store.peek(Key("SH#0001", "ghost")) is None
    assert dict(store.usage) == before


def test_given_a_page_up_to_its_limit_then_it_names_where_to_go_on_even_at_the_end(store: MemoryStore) -> None:
    """As on AWS: who takes a position for a promise of more items is caught here."""
    page = store.query(RangeRead("SH#0001", "A", "Z", limit=1))
    assert page.next_after == "LEASE"
    assert store.query(RangeRead("SH#0001", "A", "Z", limit=1, after="LEASE")).items == ()


def test_given_a_time_to_live_that_has_passed_then_expire_removes_the_item_from_either_table(
    store: MemoryStore,
) -> None:
    old, ended, young = Key("SH#0001", "A"), Key("SH#0001", "A", "history"), Key("SH#0001", "B")
    store.write([Put(key, item(key, expires_at=until)) for key, until in ((old, 99), (ended, 99), (young, 100))])
    assert store.expire(100_999) == 2
    assert set(store.get([old, ended, young, LEASE])) == {young, LEASE}


def test_given_an_update_inside_of_an_item_then_nothing_gets_too_deep_by_it(store: MemoryStore) -> None:
    deep: dict[str, Value] = {}
    for _ in range(NESTING_LEVELS_MAX - 3):
        deep = {"in": deep}
    key = Key("A", "one")
    store.write([Put(key, {**item(key), "doc": deep})])
    path = "doc" + ".#in" * (NESTING_LEVELS_MAX - 3)

    def put_inside(value: Value) -> Transaction:
        return Transaction("set", (Update(key, f"SET {path}.#in = :new", {"#in": "in"}, {":new": value}),), "t", None)

    with pytest.raises(StoreRequestInvalid, match="Nesting"):
        store.transact(put_inside({"one": {"more": "level"}}))
    assert store.transact(put_inside("text")) == Applied()
