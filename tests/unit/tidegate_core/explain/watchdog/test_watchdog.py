"""Which shards are said to stand still, and who says so."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.explain.watchdog.watchdog import (
    LATE_MS,
    STANDS_MS,
    Broken,
    Cursors,
    Kind,
    ShardSigns,
    broken_promises,
    is_watched_by,
    meaning,
)
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.node_status import GONE_MS, SILENT_MS, NodeStatus, absences, cards_of, missing
from tidegate_core.rows.store_operations import Item

NOW = 1_763_676_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE
FINE = ShardSigns(shard=7, owner="a", epoch=3, served=NOW - 12_000, message_due=NOW + 1, timer_due=NOW - 200)
OWNERS = st.lists(st.uuids().map(str), min_size=1, max_size=6, unique=True)


def kinds(signs: ShardSigns) -> list[str]:
    return [each.kind for each in broken_promises(signs, NOW)]


def test_given_a_shard_that_moves_then_nothing_is_said() -> None:
    assert broken_promises(FINE, NOW) == ()


@pytest.mark.parametrize(
    ("field", "patience_ms", "kind"),
    [
        ("served", LATE_MS, "owner_silent"),
        ("message_due", LATE_MS, "messages_late"),
        ("timer_due", LATE_MS, "fires_late"),
        ("start_by", LATE_MS, "starts_late"),
        ("unread_since", STANDS_MS, "reading_stands"),
    ],
)
def test_given_a_promise_then_it_is_broken_once_its_patience_is_over(field: str, patience_ms: int, kind: Kind) -> None:
    just_in_time = replace(FINE, **{field: NOW - patience_ms})  # type: ignore[arg-type]  # a field by its name
    late = replace(FINE, **{field: NOW - patience_ms - 1})  # type: ignore[arg-type]  # likewise
    assert broken_promises(just_in_time, NOW) == ()
    assert broken_promises(late, NOW) == (Broken(7, kind, NOW - patience_ms - 1),)


def test_given_all_patience_then_a_frozen_node_is_told_within_a_minute() -> None:
    """A sign of life comes every 10 s, and a shard's turn in each 20 s (`WatchdogLoop`)."""
    assert max(SILENT_MS, LATE_MS, STANDS_MS) + 20_000 + 10_000 <= 60_000


def test_given_a_system_that_was_stopped_then_what_waits_is_not_late() -> None:
    waiting = replace(FINE, message_due=1, timer_due=1, start_by=1, is_stopped=True)
    assert kinds(waiting) == []
    assert kinds(replace(waiting, served=1, unread_since=1)) == ["owner_silent", "reading_stands"]


def test_given_no_owner_yet_then_nothing_was_promised() -> None:
    assert kinds(ShardSigns(shard=7, owner=None, epoch=0, served=None, timer_due=1)) == []


@pytest.mark.parametrize("kind", get_args(Kind))
def test_given_a_finding_then_its_text_reads_back_and_means_something(kind: Kind) -> None:
    found = Broken(12, kind, NOW)
    assert Broken.parse(found.text()) == found
    assert meaning(kind)


@pytest.mark.parametrize("text", ["", "1/unheard_of/2", "x/owner_silent/1", "1/owner_silent", "1/owner_silent/-1"])
def test_given_a_newer_nodes_finding_then_it_is_passed(text: str) -> None:
    assert Broken.parse(text) is None


@given(alive=OWNERS, shard=st.integers(0, 9_999), data=st.data())
def test_given_nodes_then_each_shard_is_watched_by_one_that_is_not_its_owner(
    alive: list[str], shard: int, data: st.DataObject
) -> None:
    owner = data.draw(st.sampled_from([*alive, "gone", None]))
    watchers = [each for each in alive if is_watched_by(each, shard, owner, alive)]
    assert len(watchers) == 1
    assert watchers != [owner] or alive == [owner]


@given(alive=OWNERS.filter(lambda owners: len(owners) > 2), shard=st.integers(0, 9_999))
def test_given_a_node_that_goes_then_only_its_own_shards_change_hands(alive: list[str], shard: int) -> None:
    (before,) = [each for each in alive if is_watched_by(each, shard, None, alive)]
    left = [each for each in alive if each != alive[0]]
    (after,) = [each for each in left if is_watched_by(each, shard, None, left)]
    assert after == before or before == alive[0]


def test_given_a_position_then_it_stands_from_the_first_look_on() -> None:
    cursors = Cursors()

    def look(position: int, end: int, after: int, page: str = "-") -> int | None:
        return cursors.unread_since("events", 1, (position, page), end, NOW + after)

    assert look(5, 5, 0) is None
    assert look(5, 9, 10) is None
    assert look(5, 9, 20) == NOW + 10
    assert cursors.unread_since("requests", 1, (5, "-"), 9, NOW + 20) is None, "another log"
    assert look(6, 9, 30) is None
    assert look(6, 9, 40) == NOW + 30
    assert look(6, 9, 50, page="a listener") is None, "it is being handed out"
    assert look(9, 9, 60) is None
    assert look(9, 10, 70) is None, "what came just now has waited for nobody"


def test_given_a_card_then_its_node_is_silent_after_five_that_did_not_come() -> None:
    card = NodeStatus(owner="a", node="n", version="1", tzdata="t", started_at=0, seen=NOW - SILENT_MS)
    assert (card.is_silent(NOW), card.is_silent(NOW + 1)) == (False, True)


def test_given_a_node_that_was_started_again_then_the_process_before_it_is_not_missing() -> None:
    """Seen with real nodes that were killed again and again: each new process told of all that had ever fallen."""
    fell = NodeStatus(owner="a", node="node-1", version="1", tzdata="t", started_at=0, seen=NOW - HOUR)
    again = replace(fell, owner="b", started_at=NOW - MINUTE, seen=NOW)
    assert missing([fell], NOW) == [fell]
    assert missing([fell, replace(again, node="node-2")], NOW) == [fell]
    assert missing([fell, again], NOW) == []
    assert missing([fell, replace(again, seen=NOW - MINUTE)], NOW) == [replace(again, seen=NOW - MINUTE)]


def test_given_two_processes_of_one_name_at_once_then_the_one_that_fell_silent_is_missing() -> None:
    fell = NodeStatus(owner="a", node="n", version="1", tzdata="t", started_at=0, seen=NOW - MINUTE)
    assert missing([fell, replace(fell, owner="b", started_at=NOW - HOUR, seen=NOW)], NOW) == [fell]


@pytest.mark.parametrize(
    ("ago", "owners", "is_again", "expected"),
    [
        pytest.param(SILENT_MS, {"b"}, False, None, id="heard of"),
        pytest.param(SILENT_MS + 1, {"b"}, False, "silent", id="for a short time"),
        pytest.param(GONE_MS + 1, {"b"}, False, "gone", id="others have all of its shards"),
        pytest.param(GONE_MS + 1, {"a", "b"}, False, "silent", id="some are still its own"),
        pytest.param(GONE_MS + 1, None, False, "silent", id="nobody has looked whose they are"),
        pytest.param(SILENT_MS + 1, {"a"}, True, "replaced", id="started again"),
        pytest.param(GONE_MS + 1, {"b"}, True, "replaced", id="started again long ago"),
    ],
)
def test_given_a_process_that_says_nothing_then_what_became_of_it_is_told_apart(
    ago: int, owners: set[str] | None, is_again: bool, expected: str | None
) -> None:
    fell = NodeStatus(owner="a", node="n", version="1", tzdata="t", started_at=0, seen=NOW - ago)
    other = NodeStatus(owner="b", node="n" if is_again else "m", version="1", tzdata="t", started_at=NOW - 1, seen=NOW)
    assert absences([fell, other], NOW, owners) == ({} if expected is None else {"a": expected})


def test_given_cards_then_they_come_by_name_and_not_beyond_their_day() -> None:
    def item(owner: str, seen: int) -> Item:
        card = NodeStatus(owner=owner, node=f"n-{owner}", version="1", tzdata="t", started_at=0, seen=seen)
        return to_item(card, keys.node_status(owner))

    items = [item("b", NOW), item("a", NOW - 23 * HOUR), item("c", NOW - 24 * HOUR)]
    assert [card.owner for card in cards_of(items, NOW)] == ["a", "b"]
