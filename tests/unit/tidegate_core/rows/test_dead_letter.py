"""Dead letters taken apart: what we say of a record, and what its sender had put into it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.dead_letter import (
    REPLAY_HEADER,
    TAKEN_HEADER,
    DeadLetter,
    Headers,
    LetterId,
    is_wanted,
    read_letter,
)
from tidegate_core.rows.keys import text_hash

ID = LetterId("events", 3, 17)
ERROR: Headers = (
    ("tidegate.error.topic", b"tidegate.events"),
    ("tidegate.error.partition", b"2"),
    ("tidegate.error.offset", b"40"),
    ("tidegate.error.class", b"invalid"),
    ("tidegate.error.message", b"count: is no number"),
    ("tidegate.error.at", b"2026-11-20T22:00:00Z"),
)
HEADERS = st.lists(
    st.tuples(st.sampled_from([name for name, _ in ERROR] + ["a", "tidegate.error.source"]), st.binary(max_size=4))
)


def a_letter(*copied: tuple[str, bytes], value: bytes = b"{}", error: Headers = ERROR) -> DeadLetter:
    return read_letter(ID, 5, b"k", value, (*copied, *error))


def test_given_a_letter_then_it_says_where_its_record_stood_and_why_it_lies_here() -> None:
    letter = a_letter(("ce_id", b"1"))
    assert (letter.topic, letter.topic_partition, letter.offset) == ("tidegate.events", 2, 40)
    assert (letter.error_class, letter.error["message"]) == ("invalid", "count: is no number")
    assert letter.buried_at == parse_instant("2026-11-20T22:00:00Z")


@given(copied=HEADERS)
def test_given_a_sender_that_writes_our_headers_then_ours_count_and_its_own_come_back(
    copied: list[tuple[str, bytes]],
) -> None:
    """A record whose sender names another topic must not be replayed there."""
    letter = a_letter(*copied)
    assert (letter.topic, letter.offset, letter.sources) == ("tidegate.events", 40, ())
    assert letter.replay_headers() == (*copied, (REPLAY_HEADER, b"events-3-17"))


def test_given_a_replayed_record_that_failed_again_then_its_header_is_replaced() -> None:
    letter = a_letter((REPLAY_HEADER, b"events-3-2"), ("a", b"1"))
    assert letter.replay_headers() == (("a", b"1"), (REPLAY_HEADER, b"events-3-17"))


def test_given_sources_that_had_taken_the_record_then_its_replay_names_them_and_those_of_replays_before() -> None:
    letter = a_letter((TAKEN_HEADER, b"a/b"), error=(*ERROR, ("tidegate.error.taken_by", b"c/d")))
    assert letter.replay_headers() == ((TAKEN_HEADER, b"a/b"), (REPLAY_HEADER, b"events-3-17"), (TAKEN_HEADER, b"c/d"))


def test_given_headers_that_nobody_could_read_then_their_stand_in_is_not_sent() -> None:
    assert a_letter(("tidegate.error.headers", b"unreadable")).headers == ()


def test_given_a_strangers_record_then_nothing_is_known_of_it() -> None:
    letter = read_letter(ID, 5, None, None, (("a", b"1"),))
    assert (letter.topic, letter.error_class, letter.value, letter.buried_at) == (None, None, b"", 5)


def test_given_copies_of_one_record_then_their_origin_is_one() -> None:
    again = (*ERROR[:-1], ("tidegate.error.at", b"2026-11-21T00:00:00Z"))
    later = read_letter(LetterId("events", 3, 99), 9, b"k", b"{}", again)
    assert later.origin == a_letter().origin


def test_given_other_places_or_bytes_then_their_origins_differ() -> None:
    moved = tuple((name, b"41" if name.endswith("offset") else value) for name, value in ERROR)
    origins = {a_letter().origin, a_letter(error=moved).origin, a_letter(value=b"{ }").origin}
    assert len(origins) == 3


def test_given_letters_with_large_records_then_nothing_of_them_is_kept_in_mind() -> None:
    """The hashes of names are remembered together with the names: ten thousand records of 1 MiB would be 20 GiB."""
    before = text_hash.cache_info().currsize
    assert len({a_letter(value=bytes([number])).origin for number in range(9)}) == 9
    assert text_hash.cache_info().currsize == before


def test_given_fires_of_one_recurring_message_then_each_has_an_origin_of_its_own() -> None:
    """All of them name the one request that made the schedule."""
    undeliverable = tuple((name, b"undeliverable" if name.endswith("class") else value) for name, value in ERROR)
    first = a_letter(("tidegate-id", b"m"), ("tidegate-nominal", b"1"), error=undeliverable)
    second = a_letter(("tidegate-id", b"m"), ("tidegate-nominal", b"2"), error=undeliverable)
    tried_again = a_letter(
        ("tidegate-id", b"m"), ("tidegate-nominal", b"1"), ("tidegate-attempt", b"9"), error=undeliverable
    )
    assert first.origin == tried_again.origin != second.origin


@pytest.mark.parametrize(
    ("value", "error", "namespace"),
    [
        pytest.param(json.dumps({"namespace": "flights"}).encode(), ERROR, "flights", id="as the record says"),
        pytest.param(b'{"namespace": "a/b#c"}', ERROR, None, id="no name"),
        pytest.param(b"{", ERROR, None, id="no JSON"),
        pytest.param(b"[" * 100_000, ERROR, None, id="too deep"),
        pytest.param(b"{}", (*ERROR, ("tidegate.error.source", b"lake/files")), "lake", id="of its source"),
        pytest.param(
            b'{"namespace": "flights"}', (*ERROR, ("tidegate.error.class", b"undeliverable")), None, id="a payload"
        ),
    ],
)
def test_given_a_record_then_its_namespace_is_known_where_it_is_certain(
    value: bytes, error: Headers, namespace: str | None
) -> None:
    assert a_letter(value=value, error=error).namespace == namespace


def test_given_filters_then_what_is_not_known_matches_none() -> None:
    letter = a_letter(value=b'{"namespace": "flights"}')
    stranger = read_letter(ID, 5, None, b"", ())
    for wanted in (
        {"topic": "tidegate.events"},
        {"error_class": "invalid"},
        {"namespaces": ("flights",)},
        {"since": parse_instant("2026-11-20T22:00:00Z")},
    ):
        assert is_wanted(letter, **wanted)
        assert not is_wanted(stranger, **wanted)
    assert is_wanted(stranger)
    assert not is_wanted(letter, since=parse_instant("2026-11-20T22:00:00.001Z"))


@pytest.mark.parametrize("text", ["requests-0-0", "runs-12-345678901234567890"])
def test_given_an_id_then_it_is_read_as_it_is_written(text: str) -> None:
    assert str(LetterId.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["requests-00-1", "pokes-1-1", "events-1", "events-1-1\n", "events-1-1-1", "", "events--1-2"]
)
def test_given_no_id_then_it_is_refused_with_the_way_to_one(text: str) -> None:
    with pytest.raises(ValueError, match="tidegate dlq list"):
        LetterId.parse(text)
