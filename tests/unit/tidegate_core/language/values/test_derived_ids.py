"""Shards: frozen by golden vectors, because another value would strand stored data.

Ids: deterministic, without collisions, and readable where that is promised.
"""

from __future__ import annotations

import re
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.values.derived_ids import (
    cluster_object_shard,
    external_name,
    hash_of,
    incarnation_of,
    manual_mark,
    message_shard,
    nominal_mark,
    run_id,
    schedule_shard,
    seal_mark,
    shard_of,
    shard_of_run,
    unnamed_message_shard,
)
from tidegate_core.language.values.log_position import Position


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
    assert (cluster_object_shard("sources", 32), cluster_object_shard("sources", 256)) == (29, 157)


CREATED = Position(1_763_678_400_000, "0f1e2d3c4b5a69788796a5b4c3d2e1f0", 3, 42)
INCARNATION = "01KAHPSBG0CHT4B9AB62BZ0JVH"


def test_given_golden_vectors_then_ids_never_change() -> None:
    assert incarnation_of(CREATED) == INCARNATION
    assert run_id(42, INCARNATION, "cron", nominal_mark(1_763_678_400_000)) == "0042-ycmlb5jtdamdqcifycusp3eq6e"
    assert run_id(42, INCARNATION, "all_of", seal_mark(1, "2013-01-01")) == "0042-pnfwco22h5tyhkvxtbmz5wjpum"
    assert run_id(42, INCARNATION, "manual", manual_mark(CREATED)) == "0042-d6l35rcha56rak4nl3w2a4hjdi"


def test_given_marks_then_no_two_occurrences_share_an_id() -> None:
    marks = [nominal_mark(1), seal_mark(1), seal_mark(1, ""), seal_mark(1, "1"), seal_mark(11), manual_mark(CREATED)]

    assert len({run_id(0, INCARNATION, "x", mark) for mark in marks}) == len(marks)


@given(st.integers(0, 9_999), st.integers(0, 10**13 - 1), st.integers(1, 99_999))
def test_given_any_run_then_its_shard_is_readable_and_its_name_fits_a_cluster(
    shard: int, nominal: int, attempt: int
) -> None:
    run = run_id(shard, INCARNATION, "cron", nominal_mark(nominal))
    name = external_name(run, attempt)

    assert shard_of_run(run) == shard
    assert len(name) <= 63
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)


def test_given_later_creation_then_incarnation_sorts_later() -> None:
    later = CREATED._replace(append_time=CREATED.append_time + 1, offset=0)

    assert incarnation_of(CREATED) < incarnation_of(later)
    assert incarnation_of(CREATED) != incarnation_of(CREATED._replace(offset=43))


@pytest.mark.parametrize("text", ["", "42-x", "0042-MFRGGZDFMZTWQ2LKN5WG63TQOE", "0042-mfrggzdfmztwq2lkn5wg63tqo1"])
def test_given_another_text_then_it_is_no_run_id(text: str) -> None:
    with pytest.raises(ValueError, match="not a run id"):
        shard_of_run(text)


@pytest.mark.parametrize("shard", [-1, 10_000])
def test_given_shard_beyond_four_digits_then_no_id_is_made(shard: int) -> None:
    with pytest.raises(ValueError, match="shard"):
        run_id(shard, INCARNATION, "cron", nominal_mark(0))
