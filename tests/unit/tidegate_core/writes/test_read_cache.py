"""The owner's cache: what was read, kept right by its own commits, dropped where somebody else may have written."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.writes.read_cache import ITEMS_MAX, RANGES_MAX, RECORDS_MAX, View

A, B, C = (Key("SH#0000", f"J#{name}") for name in "abc")
OTHER_SHARD = Key("SH#0001", "J#a")


def item(key: Key, **more: str | int) -> Item:
    return {"pk": key.pk, "sk": key.sk, **more}


def ids(found: Mapping[str, Item] | None) -> list[str]:
    assert found is not None
    return sorted(found)


def test_given_a_read_then_absence_is_known_too() -> None:
    view = View(0)
    view.learn([A, B], {A: item(A)})
    assert view.item(A) == item(A)
    assert view.knows(B)
    assert view.item(B) is None
    assert not view.knows(C)


def test_given_a_commit_then_items_and_ranges_are_as_the_store_has_them() -> None:
    view = View(0)
    view.learn([A, B], {A: item(A, rev=3)})
    view.learn_range("J#", "J#~", [item(A, rev=3)])
    view.applied({A: None, B: item(B), OTHER_SHARD: item(OTHER_SHARD)}, "tok")
    assert view.item(A) is None
    assert view.item(B) == item(B, rev=1, w="tok")
    assert ids(view.range("J#", "J#~")) == ["J#b"]


def test_given_a_commit_over_a_known_item_then_the_revision_grows_as_in_the_store() -> None:
    view = View(0)
    view.learn([A], {A: item(A, rev=3)})
    view.applied({A: item(A, x=1)}, "tok")
    assert view.item(A) == item(A, x=1, rev=4, w="tok")


def test_given_rows_of_the_history_table_then_they_are_not_kept() -> None:
    view, ended = View(0), Key("SH#0000", "L#x", "history")
    view.assume_absent(ended)
    view.applied({ended: item(ended)}, "tok")
    assert not view.knows(ended)


def test_given_a_forgotten_item_then_ranges_that_hold_it_are_forgotten_too() -> None:
    view = View(0)
    view.learn([A, B], {})
    view.learn_range("J#", "J#~", [])
    view.learn_range("K#", "K#~", [])
    view.forget([A])
    assert not view.knows(A)
    assert view.knows(B)
    assert view.range("J#", "J#~") is None
    assert view.range("K#", "K#~") is not None


def test_given_an_older_read_then_it_replaces_no_item_that_is_known() -> None:
    view = View(0)
    view.learn([A], {A: {**item(A), "rev": 2}})
    view.offer(A, item(A))
    view.offer(C, item(C))
    assert view.item(A) == {**item(A), "rev": 2}
    assert view.item(C) == item(C)


def test_given_an_item_that_is_found_where_one_was_deleted_then_others_have_put_it_there() -> None:
    """Seed 38024439: a run was lost again, and the row that tells of it has the key of the first one."""
    view = View(0)
    view.learn([A], {A: item(A)})
    view.applied({A: None}, "tok")
    assert view.item(A) is None
    view.offer(A, item(A))
    assert view.item(A) == item(A)


def test_given_an_assumption_of_absence_then_it_replaces_nothing_that_is_known() -> None:
    view = View(0)
    view.learn([A], {A: item(A)})
    view.assume_absent(A)
    view.assume_absent(B)
    assert view.item(A) == item(A)
    assert view.item(B) is None


def test_given_too_many_items_then_the_least_recently_used_go_first() -> None:
    view = View(0)
    view.learn([A, B], {})
    for number in range(ITEMS_MAX - 2):
        view.learn([Key("SH#0000", f"X#{number}")], {})
    view.item(A)
    view.learn([C], {})
    assert view.knows(A)
    assert not view.knows(B)


def test_given_too_many_ranges_then_the_oldest_goes() -> None:
    view = View(0)
    for number in range(RANGES_MAX + 1):
        view.learn_range(f"E#{number}", f"E#{number}~", [])
    assert view.range("E#0", "E#0~") is None
    assert view.range("E#1", "E#1~") is not None


@given(
    writes=st.lists(
        st.dictionaries(st.sampled_from([A, B, C]), st.one_of(st.none(), st.integers(0, 9)), min_size=1), max_size=12
    )
)
def test_given_any_commits_then_a_range_holds_what_its_items_say(writes: list[dict[Key, int | None]]) -> None:
    view = View(0)
    view.learn([A, B, C], {})
    view.learn_range("J#", "J#~", [])
    for number, write in enumerate(writes):
        view.applied(
            {key: None if value is None else item(key, x=value) for key, value in write.items()}, f"tok{number}"
        )
    found = view.range("J#", "J#~")
    assert found is not None
    assert dict(found) == {key.sk: view.item(key) for key in (A, B, C) if view.item(key) is not None}


def test_given_the_same_item_then_its_record_is_made_once_and_of_another_one_anew() -> None:
    view = View(0)
    first, second = item(A, at=1, kind="S", ref="ns/one"), item(A, at=2, kind="S", ref="ns/one")
    record = view.record(TimerRow, A, first)
    assert (record.at, record.kind, record.ref) == (1, "S", "ns/one")
    assert view.record(TimerRow, A, first) is record
    assert view.record(TimerRow, A, second).at == 2
    assert view.record(TimerRow, A, first).at == 1


def test_given_more_records_than_are_kept_then_each_is_right_all_the_same() -> None:
    view = View(0)
    items = {Key("SH#0000", f"T#{number}"): number for number in range(RECORDS_MAX + 10)}
    for _ in range(2):
        for key, number in items.items():
            assert view.record(TimerRow, key, item(key, at=number, kind="S", ref="ns/one")).at == number
