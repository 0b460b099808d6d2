"""Shards: frozen by golden vectors, because another value would strand stored data."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.values.shard_hash import (
    hash_of,
    message_shard,
    schedule_shard,
    shard_of,
    sources_shard,
    unnamed_message_shard,
)


@pytest.mark.parametrize(
    ("parts", "number", "of_32", "of_256"),
    [
        (("flights", "join-day"), 14324226739115618852, 4, 36),
        (("orders", "reminder-17"), 444917766153891753, 9, 169),
        (("a", "bc"), 6332937386749764500, 20, 148),
        (("ab", "c"), 9575330701685606897, 17, 241),
        (("", ""), 5200221206380184940, 12, 108),
        ((" ",), 16741157615738767586, 2, 226),
    ],
)
def test_given_golden_vectors_then_shards_never_change(
    parts: tuple[str, ...], number: int, of_32: int, of_256: int
) -> None:
    """CD-036: a schedule has one shard, whoever asks."""
    assert int.from_bytes(hash_of(*parts)[:8], "big") == number
    assert shard_of(*parts, shard_count=32) == of_32
    assert shard_of(*parts, shard_count=256) == of_256


def test_given_parts_then_hash_is_blake2b_over_their_length_prefixed_utf8() -> None:
    assert hash_of("ä", "b") == blake2b(b"\x00\x00\x00\x02\xc3\xa4\x00\x00\x00\x01b").digest()


@given(st.lists(st.text(max_size=3), max_size=3), st.lists(st.text(max_size=3), max_size=3))
def test_given_different_parts_then_hashes_differ_however_they_join(one: list[str], other: list[str]) -> None:
    assert (hash_of(*one) == hash_of(*other)) == (one == other)


def test_given_message_with_key_then_a_replacement_meets_it() -> None:
    assert message_shard("orders", "k", "id-1", 256) == message_shard("orders", "k", "id-2", 256)
    assert message_shard("orders", None, "id-1", 256) == shard_of("orders", "id-1", shard_count=256)
    assert schedule_shard("flights", "join-day", 256) == 36


@pytest.mark.parametrize(
    ("message_id", "named"),
    [
        ("0042-mfrggzdfmztwq2lkn5wg63tqoe", 42),
        ("0255-mfrggzdfmztwq2lkn5wg63tqoe", 255),
        ("0256-mfrggzdfmztwq2lkn5wg63tqoe", None),
        ("0042-mfrggzdfmztwq2lkn5wg63tqoe/done", None),
    ],
)
def test_given_a_message_under_an_id_of_the_form_that_is_printed_then_it_lies_where_that_says(
    message_id: str, named: int | None
) -> None:
    by_hash = shard_of("orders", message_id, shard_count=256)
    assert message_shard("orders", None, message_id, 256) == (by_hash if named is None else named)
    assert message_shard("orders", message_id, "m-1", 256) == by_hash


@given(st.integers(1, 10_000), st.data())
def test_given_a_message_without_key_and_id_then_who_reads_it_owns_it_under_each_map(
    shards: int, data: st.DataObject
) -> None:
    topic_partitions = data.draw(st.integers(1, shards))
    read_from = data.draw(st.integers(0, topic_partitions - 1))
    assert unnamed_message_shard(read_from, shards) % topic_partitions == read_from


def test_given_more_topic_partitions_than_shards_then_a_message_without_key_and_id_has_a_shard_all_the_same() -> None:
    assert unnamed_message_shard(37, 32) == 5


def test_given_the_sources_then_their_home_never_changes() -> None:
    assert (sources_shard(32), sources_shard(256)) == (29, 157)
