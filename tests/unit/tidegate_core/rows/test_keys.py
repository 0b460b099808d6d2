"""Where items lie: keys that sort as the core relies on, ranges that hold what they should, user text only as a hash."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.values.derived_ids import run_id
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.names import RUN_ID_PATTERN
from tidegate_core.rows import keys
from tidegate_core.rows.keys import LAST

INSTANTS = st.integers(0, 10**13 - 1)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)


@given(one=INSTANTS, other=INSTANTS)
def test_given_instants_then_their_texts_order_as_they_do(one: int, other: int) -> None:
    assert (keys.instant_text(one) < keys.instant_text(other)) == (one < other)


@given(slots=st.lists(st.tuples(INSTANTS, st.sampled_from("abc")), min_size=2, max_size=6))
def test_given_timer_rows_of_messages_then_they_sort_by_slot_then_id(slots: list[tuple[int, str]]) -> None:
    by_key = sorted(slots, key=lambda each: keys.message_timer(0, each[0], each[1], "v").sk)
    assert by_key == sorted(slots)


@given(at=INSTANTS, horizon=INSTANTS, kind=st.sampled_from("SE"), name=NAMES)
def test_given_a_horizon_then_the_timer_range_holds_exactly_what_is_due_by_then(
    at: int, horizon: int, kind: str, name: str
) -> None:
    sk = keys.timer(0, at, kind, f"ns/{name}").sk
    assert ("T#" <= sk <= f"T#{keys.instant_text(horizon)}#{LAST}") == (at <= horizon)


def test_given_timer_rows_of_both_planes_then_they_never_share_a_range() -> None:
    assert keys.message_timer(0, 5, "m", "v").sk.startswith("D#")
    assert not keys.definition(0, "a", "b", 1).sk.startswith("D#")
    assert not keys.evidence_chunk(0, "x", 1).sk.startswith("E#")


@pytest.mark.parametrize("low", ["J#", "R#", "Z#", "I#", "T#"])
def test_given_a_recovery_range_then_no_other_kind_of_row_lies_in_it(low: str) -> None:
    rows = [
        keys.definition(0, "a", "b", 1),
        keys.evidence(0, "a", "b", "c"),
        keys.evidence_chunk(0, "e", 1),
        keys.inbox(0, "a", "b", "Q", "o"),
        keys.job(0, "j"),
        keys.lease(0),
        keys.message(0, "m", "v"),
        keys.message_fence(0, "m"),
        keys.message_key_row(0, "m"),
        keys.message_timer(0, 1, "m", "v"),
        keys.outbox(0, "r", 1, "failed"),
        keys.own_limit(0, "a", "b"),
        keys.progress(0),
        keys.receipt(0, "a", "q"),
        keys.run(0, "r"),
        keys.schedule_state(0, "a", "b"),
        keys.timer(0, 1, "S", "a/b"),
    ]
    inside = [row.sk for row in rows if low <= row.sk <= f"{low}{LAST}"]
    assert len(inside) == 1
    assert inside[0].startswith(low)


@given(one=NAMES, other=NAMES, correlation=st.text(max_size=20))
def test_given_evidence_of_two_schedules_then_the_range_of_one_never_holds_the_other(
    one: str, other: str, correlation: str
) -> None:
    sk = keys.evidence(0, "ns", other, correlation).sk
    low = f"E#ns/{one}#"
    assert (low <= sk <= f"{low}{LAST}") == (one == other)


@given(parts=st.lists(st.text(max_size=10), max_size=4), others=st.lists(st.text(max_size=10), max_size=4))
def test_given_user_text_then_its_hash_is_26_plain_characters_and_unambiguous(
    parts: list[str], others: list[str]
) -> None:
    hashed = keys.text_hash(*parts)
    assert len(hashed) == 26
    assert set(hashed) <= set("abcdefghijklmnopqrstuvwxyz234567")
    assert (hashed == keys.text_hash(*others)) == (parts == others)


@given(st.text(max_size=40))
def test_given_text_then_its_hash_is_the_beginning_of_base32_in_small_letters(text: str) -> None:
    written = len(text.encode()).to_bytes(4, "big") + text.encode()
    digest = hashlib.blake2b(written, digest_size=17).digest()
    assert keys.text_hash(text) == base64.b32encode(digest)[:26].decode().lower()


def test_given_parts_that_join_alike_then_their_hashes_differ() -> None:
    """CD-172: no text of a user's can break a key."""
    assert keys.text_hash("a", "bc") != keys.text_hash("ab", "c")


SHORT = st.from_regex(r"[a-b0][a-b.-]{0,3}", fullmatch=True)
KEYS: list[Callable[[tuple[str, str]], object]] = [
    lambda names: keys.schedule_ref(*names),
    lambda names: keys.schedule_state(0, *names),
    lambda names: keys.definition(0, *names, 1),
    lambda names: keys.index_row(f"data/{names[0]}/{names[1]}", "ns", "s", "I", 1, 0, None),
    lambda names: keys.index_row("data/ns/d", *names, "I", 1, 0, None),
    lambda names: run_id(0, "I", "cron", names),
]


@given(st.tuples(SHORT, SHORT), st.tuples(SHORT, SHORT))
def test_given_any_two_names_then_nothing_of_one_schedule_lies_under_a_key_of_the_other(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    """CD-172: parts are joined by what no name can contain, so that `a.b/c` is never `a/b.c`; free text is hashed."""
    for key_of in KEYS:
        assert (key_of(one) == key_of(other)) == (one == other)


@pytest.mark.parametrize("cron", ["0 6 * * *", "0:6", "a#b/c:d"])
def test_given_text_with_delimiters_then_an_occurrence_s_id_is_still_plain(cron: str) -> None:
    """CD-172: CDAP splits `ns:app:...:cron` at its colons."""
    made = run_id(7, "I", cron, ("1763000000000",))
    assert re.fullmatch(RUN_ID_PATTERN, made)
    assert made != run_id(7, "I", cron.replace(":", ""), (":1763000000000",))


def test_given_hashes_and_index_shards_then_they_are_frozen() -> None:
    """Stored data is found by them: another value would strand it."""
    assert keys.text_hash("orders", "reminder-17") == "j32qu3g37vfi5zbnov43mcyl2o"
    assert keys.index_shard_of("data/flights/raw") == 26


@given(chunk=st.integers(0, 999_998))
def test_given_chunks_then_they_sort_by_number(chunk: int) -> None:
    assert keys.evidence_chunk(0, "e", chunk).sk < keys.evidence_chunk(0, "e", chunk + 1).sk


@given(one=st.integers(0, 10**10), other=st.integers(0, 10**10))
def test_given_generations_then_index_rows_of_two_never_meet(one: int, other: int) -> None:
    keyed = [keys.index_row("data/ns/d", "ns", "s", "I1", generation, 0, None) for generation in (one, other)]
    assert (keyed[0] == keyed[1]) == (one == other)


def test_given_two_repeats_of_a_request_that_makes_a_schedule_then_their_index_rows_never_meet() -> None:
    """Seed 802214: one came to nothing, and its late rows replaced those of the other, which was applied: nothing was counted."""
    first, repeat = (keys.index_row("data/ns/d", "ns", "s", incarnation, 1, 0, None) for incarnation in ("I1", "I2"))
    assert first != repeat


def test_given_two_owners_that_write_of_one_activation_then_their_index_rows_never_meet() -> None:
    first, late = (keys.index_row("data/ns/d", "ns", "s", "I1", 1, 0, vector) for vector in ("v1", "v2"))
    assert first != late


def test_given_an_index_range_then_the_version_item_is_not_in_it() -> None:
    assert not "a" <= keys.index_version(3).sk <= LAST
    assert "a" <= keys.index_row("run/ns/s", "ns", "t", "I1", 1, 0, None).sk <= LAST


@given(
    offsets=st.lists(st.tuples(INSTANTS, st.integers(0, 9), st.integers(0, 10**19)), min_size=2, max_size=5),
)
def test_given_inbox_rows_of_one_schedule_then_they_sort_by_position(offsets: list[tuple[int, int, int]]) -> None:
    positions = [Position(at, "a" * 32, topic_partition, offset) for at, topic_partition, offset in offsets]
    by_key = sorted(positions, key=lambda each: keys.inbox(0, "a", "b", "Q", each.text()).sk)
    assert by_key == sorted(positions)


def test_given_a_run_id_then_it_names_its_shard() -> None:
    assert keys.shard_of_run("0042-abc") == 42
    with pytest.raises(ValueError, match="invalid literal"):
        keys.shard_of_run("nope")


def test_given_a_schedule_then_its_index_rows_of_all_generations_are_one_range_and_nobody_elses_lie_in_it() -> None:
    pk, low, high = keys.index_rows_of("data/ns/raw", "ns", "name")
    mine = [
        keys.index_row("data/ns/raw", "ns", "name", "I1", generation, leaf, None)
        for generation in (1, 20)
        for leaf in (0, 9)
    ]
    assert all(key.pk == pk and low <= key.sk <= high for key in mine)
    for other in (("data/ns/raw", "name2"), ("data/ns/raw", "nam"), ("data/ns/rawer", "name")):
        assert not low <= keys.index_row(other[0], "ns", other[1], "I1", 1, 0, None).sk <= high
