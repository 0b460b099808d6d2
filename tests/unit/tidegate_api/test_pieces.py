"""Small pure pieces, for all inputs: page tokens, run tokens, cut-up logs, shards of requests."""

from __future__ import annotations

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_api.http.page_tokens import Place, place_of
from tidegate_api.requests.shard_routing import shard_of_request
from tidegate_api.routes.gate import run_token, speaks_for
from tidegate_api.run_logs import decoded
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.requests import REQUEST_TYPES
from tidegate_core.language.values.derived_ids import cluster_object_shard, message_shard, schedule_shard
from tidegate_core.language.values.problems import InvalidInput


@given(st.builds(Place, st.integers(0, 9), st.integers(0, 9_999), st.none() | st.text()))
def test_given_any_place_then_its_token_leads_back(place: Place) -> None:
    assert place_of(place.text()) == place


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=8,
)
raw_tokens = st.one_of(
    any_json.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=50),
    st.integers(1, 3_000).map(lambda depth: b"[" * depth),  # Within the 4,096 characters of a token.
    st.tuples(st.integers(), st.integers(), any_json).map(lambda parts: json.dumps(parts).encode()),
)


@given(raw_tokens.map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("=")) | st.text(min_size=1))
def test_given_any_text_as_token_then_a_place_or_invalid_input(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        place = place_of(text)
        assert place == Place(place.part, place.shard, place.after)
        assert place.part >= 0
        assert place.shard >= 0


def test_given_deeply_nested_token_then_invalid_input() -> None:
    with pytest.raises(InvalidInput):
        place_of(base64.urlsafe_b64encode(b"[" * 3_000).decode())


@given(st.text(), st.integers(1, 7))
def test_given_log_read_in_pieces_then_the_text_is_whole(text: str, size: int) -> None:
    data = text.encode("utf-8", "replace")
    offset, found = 0, ""
    while offset < len(data):
        size = max(size, 4)  # A character has up to four bytes: below that a piece might hold no whole one.
        piece = data[offset : offset + size]
        part, used = decoded(piece, whole=offset + len(piece) == len(data))
        found += part
        offset += used
        assert used > 0
    assert found == data.decode("utf-8", "replace")


def test_given_token_then_it_speaks_for_its_attempt_alone() -> None:
    secret = b"s" * 32
    token = f"Bearer {run_token(secret, 'r', 1)}"
    assert speaks_for((secret,), token, "r", 1)
    assert speaks_for((secret,), token.replace("Bearer", "bearer"), "r", 1)
    assert not speaks_for((secret,), token, "r", 2)
    assert not speaks_for((secret,), token, "s", 1)
    assert not speaks_for((b"t" * 32,), token, "r", 1)
    assert not speaks_for((secret,), "Bearer é", "r", 1)


@pytest.mark.parametrize("kind", sorted(REQUEST_TYPES))
def test_given_any_type_of_request_then_its_shard_is_that_of_what_it_is_about(kind: str) -> None:
    request = parse_request(json.dumps(REQUEST_TYPES[kind].EXAMPLE).encode())
    shard = shard_of_request(request, "id-1", 256)
    expected = {
        "message.send": message_shard("orders", "reminder-17", "id-1", 256),
        "message.cancel": message_shard("orders", "reminder-17", "", 256),
        "run.cancel": 42,
        "run.release": 42,
        "job.cancel": 42,
        "control.suspend": cluster_object_shard("controls", 256),
        "control.resume": cluster_object_shard("controls", 256),
        "source.apply": cluster_object_shard("sources", 256),
        "source.delete": cluster_object_shard("sources", 256),
    }
    assert shard == expected.get(kind, schedule_shard("flights", "join-day", 256))


def test_given_printed_id_of_a_message_then_its_own_shard_is_meant() -> None:
    body = {"type": "message.cancel", "namespace": "orders", "message_id": "0007-mfrggzdfmztwq2lkn5wg63tqoe"}
    assert shard_of_request(parse_request(json.dumps(body).encode()), "id-1", 16) == 7
