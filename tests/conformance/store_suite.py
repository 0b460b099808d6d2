"""What every store must do: one suite, run on the store in memory and on DynamoDB's own.

A test module makes it its own:

    class TestMemoryStore(StoreConformance):
        @pytest.fixture
        def store(self) -> Store: ...

The tests share no items: each works under a partition key of its own, so that one server serves them all.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidegate_core.rows.store_operations import (
    Action,
    Applied,
    Cancelled,
    Check,
    Condition,
    Delete,
    Item,
    Key,
    Page,
    Put,
    RangeRead,
    RawOutcome,
    RefusalCode,
    Transaction,
    Update,
    Value,
)
from tidegate_ports.store import Store, StoreRequestInvalid

RIVALS = 16
RACES = 20
ABSENT = Condition("attribute_not_exists(pk)")
NO_REASON = RefusalCode("None")


def item_at(key: Key, **attributes: Value) -> Item:
    """Returns an item for the key."""
    return {"pk": key.pk, "sk": key.sk, **attributes}


def transaction_of(*actions: Action, token: str | None = None) -> Transaction:
    """Returns a transaction whose witness is its last action's item."""
    token = uuid.uuid4().hex if token is None else token
    return Transaction("conformance", actions, token, actions[-1].key if actions else Key("none", "none"))


def revision_is(seen: int) -> Condition:
    """The condition of a compare-and-set."""
    return Condition("rev = :seen", {}, {":seen": seen})


def moved_to(key: Key, revision: int, **attributes: Value) -> Put:
    """Returns a compare-and-set from the revision before."""
    return Put(key, item_at(key, rev=revision, **attributes), revision_is(revision - 1))


def all_items(store: Store, wanted: RangeRead) -> list[Item]:
    """Reads page after page."""
    found: list[Item] = []
    after = wanted.after
    while True:
        page = store.query(
            RangeRead(wanted.pk, wanted.low, wanted.high, wanted.limit, after, wanted.table, wanted.newest_first)
        )
        assert len(page.items) <= wanted.limit
        found.extend(page.items)
        if page.next_after is None:
            return found
        assert page.next_after == page.items[-1]["sk"]
        after = page.next_after


INVALID_ACTIONS: Mapping[str, Callable[[Key], Sequence[Action]]] = {
    "no action": lambda key: (),
    "only checks": lambda key: (Check(key, ABSENT),),
    "more than 100 actions": lambda key: [
        Put(Key(key.pk, f"{n:03}"), item_at(Key(key.pk, f"{n:03}"))) for n in range(101)
    ],
    "two actions on one item": lambda key: (Delete(key), Put(key, item_at(key))),
    "more than 4 MB": lambda key: [
        Put(Key(key.pk, f"{n:03}"), item_at(Key(key.pk, f"{n:03}"), load="x" * 390_000)) for n in range(11)
    ],
    "item of more than 400 KB": lambda key: (Put(key, item_at(key, load="x" * 410_000)),),
    "key that the item does not have": lambda key: (Put(key, {"pk": key.pk, "sk": "other"}),),
    "empty sort key": lambda key: (Put(Key(key.pk, ""), {"pk": key.pk, "sk": ""}),),
    "sort key of more than 1 KB": lambda key: (Put(Key(key.pk, "x" * 1_025), {"pk": key.pk, "sk": "x" * 1_025}),),
    "syntax error": lambda key: (Put(key, item_at(key), Condition("rev == :one", {}, {":one": 1})),),
    "empty condition": lambda key: (Put(key, item_at(key), Condition("")),),
    "redundant parentheses": lambda key: (Put(key, item_at(key), Condition("((attribute_exists(rev)))")),),
    "reserved word": lambda key: (Put(key, item_at(key), Condition("attribute_exists(status)")),),
    "unknown function": lambda key: (Put(key, item_at(key), Condition("exists(rev)")),),
    "unused name": lambda key: (Put(key, item_at(key), Condition("attribute_exists(rev)", {"#rev": "rev"})),),
    "unused value": lambda key: (Put(key, item_at(key), Condition("attribute_exists(rev)", {}, {":one": 1})),),
    "undefined name": lambda key: (Put(key, item_at(key), Condition("attribute_exists(#rev)")),),
    "undefined value": lambda key: (Put(key, item_at(key), Condition("rev = :one")),),
    "attribute compared with itself": lambda key: (Put(key, item_at(key), Condition("rev = rev")),),
    "order of booleans": lambda key: (Put(key, item_at(key), Condition("rev < :yes", {}, {":yes": True})),),
    "placeholder with two meanings": lambda key: (
        Update(key, "SET rev = :n", {}, {":n": 1}, Condition("rev = :n", {}, {":n": 0})),
    ),
    "change of the key": lambda key: (Update(key, "SET sk = :n", {}, {":n": "other"}),),
    "one place changed twice": lambda key: (Update(key, "SET rev = :n REMOVE rev", {}, {":n": 1}),),
    "section that comes twice": lambda key: (Update(key, "SET rev = :n SET spec = :n", {}, {":n": 1}),),
    "sum with an absent attribute": lambda key: (Update(key, "SET rev = ghost + :n", {}, {":n": 1}),),
    "sum with a text": lambda key: (Update(key, "SET rev = :n + :text", {}, {":n": 1, ":text": "a"}),),
    "place inside an absent map": lambda key: (Update(key, "SET doc.rev = :n", {}, {":n": 1}),),
    "empty set": lambda key: (Put(key, item_at(key, tags=frozenset())),),
    "number of 39 digits": lambda key: (Put(key, item_at(key, rev=10**38 + 1)),),
    "33 levels": lambda key: (Put(key, item_at(key, doc=_nested(32))),),
    "empty attribute name": lambda key: (Put(key, item_at(key) | {"": 1}),),
}


class StoreConformance:
    """The suite. A subclass gives the `store` fixture."""

    @pytest.fixture
    def key(self) -> Key:
        """A key in a collection of its own."""
        return Key(f"T#{uuid.uuid4().hex}", "item")

    # -- one action -------------------------------------------------------------------------------------------------

    def test_given_put_if_absent_twice_then_second_is_refused_with_what_is_stored(self, store: Store, key: Key) -> None:
        first = transaction_of(Put(key, item_at(key, who="first"), ABSENT))
        second = transaction_of(Put(key, item_at(key, who="second"), ABSENT))
        assert store.transact(first) == Applied()
        assert store.transact(second) == Cancelled((RefusalCode("ConditionalCheckFailed", item_at(key, who="first")),))
        assert store.get([key]) == {key: item_at(key, who="first")}

    def test_given_absent_item_then_the_refusal_says_that_there_is_none(self, store: Store, key: Key) -> None:
        for action in (moved_to(key, 8), Delete(key, revision_is(7))):
            assert store.transact(transaction_of(action)) == Cancelled((RefusalCode("ConditionalCheckFailed"),))

    def test_given_absent_item_then_an_update_makes_it(self, store: Store, key: Key) -> None:
        update = Update(key, "SET rev = if_not_exists(rev, :zero) + :one", {}, {":zero": 0, ":one": 1}, ABSENT)
        assert store.transact(transaction_of(update)) == Applied()
        assert store.get([key]) == {key: item_at(key, rev=1)}

    def test_given_stored_item_then_an_update_changes_what_it_names(self, store: Store, key: Key) -> None:
        before = item_at(
            key, rev=1, tags=frozenset("ab"), old=True, doc={"a": 1, "deep": {"b": [1]}}, last=frozenset("x")
        )
        store.write([Put(key, before)])
        update = Update(
            key,
            "SET rev = rev + :one, #owner = :who, doc.deep.#c = rev REMOVE #old, ghost ADD tags :c, fresh :one "
            "DELETE #last :x",
            {"#owner": "owner", "#c": "c", "#old": "old", "#last": "last"},
            {":one": 1, ":who": "me", ":c": frozenset("c"), ":x": frozenset("xy")},
            revision_is(1),
        )
        assert store.transact(transaction_of(update)) == Applied()
        after = item_at(
            key, rev=2, tags=frozenset("abc"), doc={"a": 1, "deep": {"b": [1], "c": 1}}, owner="me", fresh=1
        )
        assert store.get([key]) == {key: after}

    def test_given_a_stale_repeat_of_a_single_write_then_the_refusal_shows_its_own_token(
        self, store: Store, key: Key
    ) -> None:
        store.write([Put(key, item_at(key, rev=0))])
        write = transaction_of(moved_to(key, 1, w="mine"), token="mine")
        assert store.transact(write) == Applied()
        assert store.transact(write) == Cancelled(
            (RefusalCode("ConditionalCheckFailed", item_at(key, rev=1, w="mine")),)
        )

    def test_given_delete_then_the_item_is_gone_and_deleting_again_is_fine(self, store: Store, key: Key) -> None:
        store.write([Put(key, item_at(key, rev=1))])
        assert store.transact(transaction_of(Delete(key, revision_is(1)))) == Applied()
        assert store.get([key]) == {}
        assert store.transact(transaction_of(Delete(key))) == Applied()

    def test_given_an_update_that_cannot_be_computed_then_only_its_own_condition_is_asked_first(
        self, store: Store, key: Key
    ) -> None:
        store.write([Put(key, item_at(key, rev=1))])
        broken = Update(key, "SET rev = ghost + :one", {}, {":one": 1}, revision_is(7))
        assert store.transact(transaction_of(broken)) == Cancelled(
            (RefusalCode("ConditionalCheckFailed", item_at(key, rev=1)),)
        )
        other = Delete(Key(key.pk, "other"), revision_is(7))
        guarded = Update(key, "SET rev = ghost + :one", {}, {":one": 1}, revision_is(1))
        with pytest.raises(StoreRequestInvalid):
            store.transact(transaction_of(other, guarded))

    @pytest.mark.parametrize("make", INVALID_ACTIONS.values(), ids=INVALID_ACTIONS.keys())
    def test_given_a_request_that_can_never_work_then_it_is_its_authors_bug(
        self, store: Store, key: Key, make: Callable[[Key], Sequence[Action]]
    ) -> None:
        with pytest.raises(StoreRequestInvalid):
            store.transact(transaction_of(*make(key)))
        assert store.query(RangeRead(key.pk, "", "~")) == Page((), None)

    # -- several actions --------------------------------------------------------------------------------------------

    def test_given_two_false_conditions_then_both_are_named_in_order_and_nothing_is_applied(
        self, store: Store, key: Key
    ) -> None:
        keys = [Key(key.pk, name) for name in "abcd"]
        stored = item_at(keys[0], rev=5)
        store.write([Put(keys[0], stored), Put(keys[1], item_at(keys[1], rev=1))])
        outcome = store.transact(
            transaction_of(
                moved_to(keys[0], 2),
                Check(keys[1], revision_is(1)),
                Put(keys[2], item_at(keys[2])),
                Check(keys[3], revision_is(1)),
            )
        )
        failed = RefusalCode("ConditionalCheckFailed", stored)
        assert outcome == Cancelled((failed, NO_REASON, NO_REASON, RefusalCode("ConditionalCheckFailed")))
        assert store.get(keys) == {keys[0]: stored, keys[1]: item_at(keys[1], rev=1)}

    def test_given_true_conditions_then_all_actions_of_both_tables_are_applied(self, store: Store, key: Key) -> None:
        ended = Key(key.pk, "ended", "history")
        checked, gone = Key(key.pk, "checked"), Key(key.pk, "gone")
        store.write([Put(each, item_at(each, rev=1)) for each in (checked, gone, key)])
        outcome = store.transact(
            transaction_of(
                Check(checked, revision_is(1)),
                Delete(gone, revision_is(1)),
                Put(ended, item_at(ended)),
                moved_to(key, 2),
            )
        )
        assert outcome == Applied()
        assert store.get([checked, gone, ended, key]) == {
            checked: item_at(checked, rev=1),
            ended: item_at(ended),
            key: item_at(key, rev=2),
        }

    @pytest.mark.parametrize(("seen", "is_it"), [([1, 2], True), ([2, 1], False), ([1], False), ([1, 2, 3], False)])
    def test_given_a_list_then_a_condition_compares_all_of_it_in_its_order(
        self, store: Store, key: Key, seen: list[Value], is_it: bool
    ) -> None:
        """What a row of dedupe says of an id's uses is compared so."""
        store.write([Put(key, item_at(key, uses=[1, 2]))])
        as_seen = Condition("#uses = :seen", {"#uses": "uses"}, {":seen": seen})
        outcome = store.transact(transaction_of(Put(key, item_at(key, uses=[3]), as_seen)))
        assert isinstance(outcome, Applied) == is_it

    def test_given_a_repeated_transaction_then_it_is_applied_once_and_says_so_twice(
        self, store: Store, key: Key
    ) -> None:
        other = Key(key.pk, "other")
        counted = transaction_of(Put(other, item_at(other), ABSENT), Update(key, "ADD rev :one", {}, {":one": 1}))
        assert [store.transact(counted) for _ in range(3)] == [Applied()] * 3
        assert store.get([key]) == {key: item_at(key, rev=1)}

    def test_given_a_token_that_was_used_for_something_else_then_it_is_its_authors_bug(
        self, store: Store, key: Key
    ) -> None:
        other = Key(key.pk, "other")
        assert store.transact(transaction_of(Delete(other), Put(key, item_at(key)), token=key.pk)) == Applied()
        with pytest.raises(StoreRequestInvalid):
            store.transact(transaction_of(Delete(other), Delete(key), token=key.pk))

    def test_given_100_actions_then_they_are_one_transaction(self, store: Store, key: Key) -> None:
        keys = [Key(key.pk, f"{n:03}") for n in range(100)]
        assert store.transact(transaction_of(*(Put(each, item_at(each), ABSENT) for each in keys))) == Applied()
        assert len(store.get(keys)) == 100

    # -- races ------------------------------------------------------------------------------------------------------

    def test_given_16_rivals_for_one_revision_then_exactly_one_wins_each_time(self, store: Store, key: Key) -> None:
        store.write([Put(key, item_at(key, rev=0))])
        started = threading.Barrier(RIVALS)

        def claim(rival: int, revision: int) -> RawOutcome:
            started.wait()
            return store.transact(transaction_of(moved_to(key, revision, who=rival)))

        with ThreadPoolExecutor(RIVALS) as pool:
            for revision in range(1, RACES + 1):
                outcomes = list(pool.map(claim, range(RIVALS), [revision] * RIVALS))
                winner = outcomes.index(Applied())
                assert outcomes.count(Applied()) == 1
                assert store.get([key]) == {key: item_at(key, rev=revision, who=winner)}

    def test_given_rival_transactions_over_common_items_then_none_is_applied_in_part(
        self, store: Store, key: Key
    ) -> None:
        keys = [Key(key.pk, name) for name in "abc"]
        store.write([Put(each, item_at(each, rev=0)) for each in keys])
        started = threading.Barrier(RIVALS)

        def claim(rival: int, revision: int) -> RawOutcome:
            ordered = keys if rival % 2 else keys[::-1]
            started.wait()
            return store.transact(transaction_of(*(moved_to(each, revision, who=rival) for each in ordered)))

        with ThreadPoolExecutor(RIVALS) as pool:
            for revision in range(1, RACES // 2 + 1):
                outcomes = list(pool.map(claim, range(RIVALS), [revision] * RIVALS))
                winners = [rival for rival, outcome in enumerate(outcomes) if outcome == Applied()]
                # On AWS all of them may cancel each other; one that claims to have won has won everywhere.
                assert len(winners) <= 1
                if not winners:
                    winners = [RIVALS]
                    store.transact(transaction_of(*(moved_to(each, revision, who=RIVALS) for each in keys)))
                assert [item["who"] for item in store.get(keys).values()] == winners * 3

    # -- batches ----------------------------------------------------------------------------------------------------

    def test_given_a_large_batch_over_both_tables_then_all_of_it_is_applied(self, store: Store, key: Key) -> None:
        olds = [Key(key.pk, f"old{n:03}") for n in range(30)]
        news = [Key(key.pk, f"new{n:03}", "history" if n % 2 else "main") for n in range(60)]
        assert not store.write([Put(each, item_at(each)) for each in olds])
        assert not store.write([*map(Delete, olds), *(Put(each, item_at(each, n=1)) for each in news)])
        assert store.get([*olds, *news]) == {each: item_at(each, n=1) for each in news}

    def test_given_identical_repeats_in_a_batch_then_they_are_one(self, store: Store, key: Key) -> None:
        assert not store.write([Put(key, item_at(key, n=1)), Put(key, item_at(key, n=1))])
        assert not store.write([])
        assert store.get([key]) == {key: item_at(key, n=1)}

    @pytest.mark.parametrize(
        "make",
        [
            pytest.param(lambda key: [Put(key, item_at(key)), Delete(key)], id="two actions for one key"),
            pytest.param(lambda key: [Put(key, item_at(key), ABSENT)], id="condition"),
            pytest.param(lambda key: [Put(key, item_at(key, load="x" * 410_000))], id="item of more than 400 KB"),
            pytest.param(lambda key: [Put(key, item_at(key, tags=frozenset()))], id="empty set"),
        ],
    )
    def test_given_a_batch_that_can_never_work_then_it_is_its_authors_bug(
        self, store: Store, key: Key, make: Callable[[Key], Sequence[Put | Delete]]
    ) -> None:
        with pytest.raises(StoreRequestInvalid):
            store.write(make(key))

    # -- reads ------------------------------------------------------------------------------------------------------

    def test_given_every_kind_of_value_then_it_comes_back_as_it_was(self, store: Store, key: Key) -> None:
        values: dict[str, Value] = {
            "text": "täglich \U0001f600",
            "empty": "",
            "numbers": [0, -1, 10**37, 10**38 - 1, -(10**38) + 1, 10**40],
            "data": b"\x00\xff",
            "flags": [True, False, None],
            "set": frozenset({"", "a", "ä"}),
            "nested": {"list": [[], {}], "one": {"two": {"three": [1, "1", True]}}},
        }
        store.write([Put(key, item_at(key, **values))])
        found = store.get([key])[key]
        assert found == item_at(key, **values)
        # `True == 1` to Python, and not to whoever reads the item next.
        assert [type(flag) for flag in _elements(found["flags"])] == [bool, bool, type(None)]
        assert {type(number) for number in _elements(found["numbers"])} == {int}

    def test_given_what_was_handed_out_or_in_changes_then_the_store_does_not(self, store: Store, key: Key) -> None:
        rows: list[Value] = [1]
        doc: dict[str, Value] = {"rows": rows}
        store.write([Put(key, item_at(key, doc=doc))])
        transacted = Update(key, "SET again = :doc", {}, {":doc": doc})
        store.transact(transaction_of(transacted))
        rows.append(2)
        refused = store.transact(transaction_of(Delete(key, ABSENT)))
        assert isinstance(refused, Cancelled)
        handed_out = [store.get([key])[key], store.query(RangeRead(key.pk, "a", "z")).items[0], refused.reasons[0].item]
        for item in handed_out:
            assert item == item_at(key, doc={"rows": [1]}, again={"rows": [1]})
            _elements(_members(item["doc"])["rows"]).append(3)
            _members(item["again"])["rows"] = "changed"
        assert store.get([key]) == {key: item_at(key, doc={"rows": [1]}, again={"rows": [1]})}

    def test_given_more_keys_than_one_call_takes_then_all_that_exist_come(self, store: Store, key: Key) -> None:
        keys = [Key(key.pk, f"{n:03}", "history" if n % 3 else "main") for n in range(230)]
        there = keys[::2]
        store.write([Put(each, item_at(each)) for each in there])
        assert store.get([*keys, *keys[:5]]) == {each: item_at(each) for each in there}
        assert store.get([]) == {}

    def test_given_items_of_many_megabytes_then_a_read_still_brings_all(self, store: Store, key: Key) -> None:
        keys = [Key(key.pk, f"{n:03}") for n in range(50)]
        store.write([Put(each, item_at(each, load="x" * 380_000)) for each in keys])
        assert store.get(keys).keys() == set(keys)
        assert len(all_items(store, RangeRead(key.pk, "000", "049"))) == 50

    @pytest.mark.parametrize(
        ("low", "high", "after", "ascending"),
        [
            pytest.param("b", "d", None, "bcd", id="bounds are inclusive"),
            pytest.param("bb", "z", None, "cde", id="bounds need not exist"),
            pytest.param("a", "c", "b", "c", id="position inside"),
            pytest.param("c", "c", None, "c", id="one key"),
            pytest.param("d", "b", None, "", id="bounds the wrong way round"),
            pytest.param("f", "z", None, "", id="nothing there"),
            pytest.param("", "b", None, "ab", id="empty lower bound"),
            pytest.param("", "", None, "", id="empty bounds"),
            pytest.param("b", "d", "a", "bcd", id="position before the range"),
            pytest.param("b", "d", "e", "", id="position behind the range"),
            pytest.param("b", "d", "b", "cd", id="position at the beginning"),
            pytest.param("b", "d", "d", "", id="position at the end"),
        ],
    )
    @pytest.mark.parametrize("limit", [1, 2, 1_000])
    def test_given_a_range_then_exactly_what_lies_in_it_comes_in_order(
        self, store: Store, key: Key, low: str, high: str, after: str | None, ascending: str, limit: int
    ) -> None:
        store.write([Put(Key(key.pk, name), item_at(Key(key.pk, name))) for name in "abcde"])
        found = all_items(store, RangeRead(key.pk, low, high, limit, after))
        assert "".join(str(item["sk"]) for item in found) == ascending

    def test_given_newest_first_then_the_order_and_the_position_turn_round(self, store: Store, key: Key) -> None:
        store.write([Put(Key(key.pk, name, "history"), item_at(Key(key.pk, name))) for name in "abcde"])
        expected = {None: "dcb", "d": "cb", "c": "b", "z": "dcb", "a": "", "b": ""}
        for after, names in expected.items():
            for limit in (1, 2, 1_000):
                wanted = RangeRead(key.pk, "b", "d", limit, after, "history", newest_first=True)
                assert "".join(str(item["sk"]) for item in all_items(store, wanted)) == names
        assert store.query(RangeRead(key.pk, "a", "z")) == Page((), None)

    def test_given_keys_beyond_ascii_then_they_sort_as_their_code_points(self, store: Store, key: Key) -> None:
        names = ["#", "0", "A", "Z", "_", "a", "z", "~", "é", "中", "\uffee", "\U0001f600"]
        store.write([Put(Key(key.pk, name), item_at(Key(key.pk, name))) for name in reversed(names)])
        found = all_items(store, RangeRead(key.pk, "#", "\U0010ffff", limit=5))
        assert [item["sk"] for item in found] == names

    def test_given_a_limit_of_nothing_then_it_is_its_authors_bug(self, store: Store, key: Key) -> None:
        with pytest.raises(StoreRequestInvalid):
            store.query(RangeRead(key.pk, "a", "z", limit=0))


def _nested(levels: int) -> Value:
    value: Value = 1
    for _ in range(levels):
        value = [value]
    return value


def _elements(value: Value) -> list[Value]:
    assert isinstance(value, list)
    return value


def _members(value: Value) -> dict[str, Value]:
    assert isinstance(value, dict)
    return value
