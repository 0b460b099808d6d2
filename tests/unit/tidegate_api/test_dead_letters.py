"""Dead letters over REST: lists, bytes that harm nobody, replays that happen once."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import NOW, Process
from tidegate_api.reads import dead_letters
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import NotProduced, Produce, Unavailable
from tidegate_core.rows.store_operations import Lost
from tidegate_core.writes.dead_letter_marks import REPLAYING_MS_MAX

EVENTS, REQUESTS, RUNS = "tidegate.events.dlq", "tidegate.requests.dlq", "tidegate.runs.dlq"


def error(topic: str = "tidegate.events", offset: int = 40, kind: str = "invalid") -> list[tuple[str, bytes]]:
    return [
        ("tidegate.error.topic", topic.encode()),
        ("tidegate.error.partition", b"2"),
        ("tidegate.error.offset", str(offset).encode()),
        ("tidegate.error.class", kind.encode()),
        ("tidegate.error.message", b"count: is no number"),
        ("tidegate.error.at", format_instant(NOW + offset).encode()),
    ]


@pytest.fixture
def letters(process: Process) -> Process:
    logs = process.bus.logs
    logs.append(REQUESTS, b'{"namespace": "flights"}', *error("tidegate.requests", 7), key=b"k")
    logs.append(REQUESTS, b"payload", ("tidegate-id", b"m"), *error("orders.out", 8, "undeliverable"), key=b"o-1")
    logs.append(EVENTS, b"\xff\x00", ("h", b"\x1b[2J"), *error(offset=40))
    logs.append(EVENTS, b"{}", *error(offset=41, kind="too_large"))
    logs.append(RUNS, b"{}", ("tidegate.error.topic", b"tidegate.runs"), ("tidegate.error.class", b"oom"))
    return process


def listed(process: Process, **query: Any) -> list[str]:
    found, token = [], ""
    while True:
        answer = process.http.get("/api/v1/dlq", params={**query, **({"page_token": token} if token else {})})
        assert answer.status_code == 200, answer.text
        found += [each["id"] for each in answer.json()["items"]]
        token = answer.json()["next_page_token"]
        if not token:
            return found


def act(process: Process, action: str, letter: str, **fields: Any) -> tuple[int, Any]:
    answer = process.http.post(f"/api/v1/dlq/{letter}/{action}", json=fields)
    return answer.status_code, answer.json()


ALL = ["requests-0-0", "requests-0-1", "events-0-0", "events-0-1", "runs-0-0"]


def test_given_letters_then_all_are_listed_whatever_the_pages_size(letters: Process) -> None:
    for size in (1, 2, 100):
        assert listed(letters, page_size=size) == ALL


def test_given_more_than_a_page_looks_at_then_the_list_goes_on(
    letters: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "READ_RECORDS_MAX", 2)
    assert listed(letters) == ALL
    assert listed(letters, error_class="oom") == ["runs-0-0"]


def test_given_a_page_that_ends_where_another_queue_does_then_the_list_goes_on(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topic partition and offset are those of the last letter of all, and the topic is not."""
    for number in range(2):
        process.bus.logs.append(REQUESTS, b"{}", *error(offset=number))
        process.bus.logs.append(EVENTS, b"{}", *error(offset=number))
    monkeypatch.setattr(dead_letters, "READ_RECORDS_MAX", 2)
    assert listed(process) == ["requests-0-0", "requests-0-1", "events-0-0", "events-0-1"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param({"queue": "events"}, ALL[2:4], id="queue"),
        pytest.param({"topic": "orders.out"}, ALL[1:2], id="topic"),
        pytest.param({"error_class": "too_large"}, ALL[3:4], id="class"),
        pytest.param({"namespace": "flights"}, ALL[:1], id="namespace"),
        pytest.param({"since": format_instant(NOW + 41), "queue": "events"}, ALL[3:4], id="since"),
    ],
)
def test_given_filters_then_only_those(letters: Process, query: dict[str, str], found: list[str]) -> None:
    assert listed(letters, **query) == found


def test_given_bytes_then_what_does_not_show_is_base64(letters: Process) -> None:
    shown = letters.http.get("/api/v1/dlq/events-0-0").json()
    assert base64.b64decode(shown["value"]["base64"]) == b"\xff\x00"
    assert shown["headers"] == [
        {"name": "h", "value": {"text": None, "base64": base64.b64encode(b"\x1b[2J").decode(), "truncated": False}}
    ]
    assert letters.http.get("/api/v1/dlq/requests-0-0").json()["value"]["text"] == '{"namespace": "flights"}'


def test_given_a_long_text_then_it_is_cut_and_the_whole_is_had_apart(process: Process) -> None:
    text = ("x" * (dead_letters.SHOWN_BYTES_MAX - 1) + "é").encode()
    process.bus.logs.append(EVENTS, text, *error())
    shown = process.http.get("/api/v1/dlq/events-0-0").json()
    assert (shown["value"]["text"], shown["value"]["truncated"]) == (text[:-2].decode(), True)
    assert base64.b64decode(process.http.get("/api/v1/dlq/events-0-0/value").json()["base64"]) == text


def test_given_a_replay_then_the_record_goes_back_as_it_was_and_is_listed_no_more(letters: Process) -> None:
    status, answer = act(letters, "replay", "events-0-0", actor="ana", reason="mended")
    assert (status, answer["status"], answer["mark"]["state"]) == (200, "accepted", "replayed")
    headers = (("h", b"\x1b[2J"), ("tidegate-replay", b"events-0-0"))
    assert letters.bus.produced == [Produce("tidegate.events", None, b"\xff\x00", headers, 2)]
    assert "events-0-0" not in listed(letters)
    assert "events-0-0" in listed(letters, all="true")
    assert letters.http.get("/api/v1/dlq/events-0-0").json()["mark"]["actor"] == "ana"


def test_given_an_undeliverable_message_then_it_goes_where_its_key_leads(letters: Process) -> None:
    act(letters, "replay", "requests-0-1")
    (order,) = letters.bus.produced
    assert (order.topic, order.key, order.topic_partition) == ("orders.out", b"o-1", None)


def test_given_a_repeat_of_a_replay_then_nothing_is_produced(letters: Process) -> None:
    act(letters, "replay", "events-0-1")
    status, answer = act(letters, "replay", "events-0-1")
    assert (status, answer["status"], len(letters.bus.produced)) == (200, "unchanged", 1)
    status, answer = act(letters, "replay", "events-0-1", again=True)
    assert (answer["status"], answer["mark"]["replays"], len(letters.bus.produced)) == ("accepted", 2, 2)


def test_given_a_copy_of_a_letter_then_what_was_done_counts_for_it(letters: Process) -> None:
    """A copy repeats when the node that made it falls before it noted so."""
    letters.bus.logs.append(EVENTS, b"{}", *error(offset=41, kind="too_large"))
    act(letters, "replay", "events-0-1")
    assert listed(letters, queue="events") == ["events-0-0"]
    assert act(letters, "replay", "events-0-2")[1]["status"] == "unchanged"


def test_given_a_dropped_letter_then_a_replay_needs_to_be_meant(letters: Process) -> None:
    assert act(letters, "drop", "events-0-0")[1]["mark"]["state"] == "dropped"
    assert act(letters, "drop", "events-0-0")[1]["status"] == "unchanged"
    status, answer = act(letters, "replay", "events-0-0")
    assert (status, letters.bus.produced) == (409, [])
    assert "--again" in answer["detail"]
    assert act(letters, "replay", "events-0-0", again=True)[1]["mark"]["state"] == "replayed"


def test_given_a_broker_that_does_not_answer_then_the_letter_is_seen_again_and_may_be_replayed(
    letters: Process,
) -> None:
    letters.bus.failure = NotProduced("unavailable", "timed out")
    assert act(letters, "replay", "events-0-0")[0] == 503
    letters.bus.failure = None
    assert act(letters, "replay", "events-0-0")[0] == 409
    letters.clock.now += REPLAYING_MS_MAX
    assert "events-0-0" in listed(letters)
    assert act(letters, "replay", "events-0-0")[1]["status"] == "accepted"


def test_given_a_store_that_falls_silent_behind_the_produce_then_it_says_that_the_record_is_there(
    letters: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told to ask again would replay it twice."""
    transact = letters.store.transact

    def until_produced(transaction: Any) -> Any:
        return Lost() if letters.bus.produced else transact(transaction)

    monkeypatch.setattr(letters.store, "transact", until_produced)
    status, answer = act(letters, "replay", "events-0-0")
    assert (status, len(letters.bus.produced)) == (503, 1)
    assert "was produced" in answer["detail"]
    assert "ask again" not in answer["detail"]


def test_given_a_topic_that_takes_it_no_more_then_the_letter_stays_as_it_was(letters: Process) -> None:
    letters.bus.failure = NotProduced("refused", "UNKNOWN_TOPIC_OR_PART")
    status, answer = act(letters, "replay", "requests-0-1")
    assert (status, "orders.out" in answer["detail"]) == (409, True)
    assert "requests-0-1" in listed(letters)
    letters.bus.failure = None
    assert act(letters, "replay", "requests-0-1")[1]["mark"]["replays"] == 1


def test_given_a_run_that_was_given_up_then_it_can_be_dropped_and_not_replayed(letters: Process) -> None:
    status, answer = act(letters, "replay", "runs-0-0")
    assert (status, letters.bus.produced) == (400, [])
    assert "tidegate schedule trigger" in answer["errors"][0]["hint"]
    assert act(letters, "drop", "runs-0-0")[0] == 200


def test_given_a_strangers_record_then_it_is_never_produced(process: Process) -> None:
    process.bus.logs.append(EVENTS, b"x")
    assert act(process, "replay", "events-0-0")[0] == 400
    assert process.bus.produced == []


@pytest.mark.parametrize(
    ("path", "status"),
    [("events-0-9", 404), ("events-3-0", 404), ("events-x", 400), ("pokes-0-0", 400), ("events-0-1\u0663", 400)],
)
def test_given_no_such_letter_then_it_says_so(letters: Process, path: str, status: int) -> None:
    assert letters.http.get(f"/api/v1/dlq/{path}").status_code == status
    assert act(letters, "drop", path)[0] == status


def test_given_a_wrong_body_then_each_field_is_named(letters: Process) -> None:
    status, answer = act(letters, "drop", "events-0-0", again="yes", who="ana", actor=7)
    assert status == 400
    assert {each["field"] for each in answer["errors"]} == {"again", "who", "actor"}


def test_given_a_foreign_page_token_then_400(letters: Process) -> None:
    for token in ("x", "WzksMCwiMSJd", "WzAsMCwieCJd"):
        assert letters.http.get("/api/v1/dlq", params={"page_token": token}).status_code == 400


def test_given_a_broker_that_is_down_then_503(letters: Process) -> None:
    letters.bus.logs.failure = Unavailable("broker")
    assert letters.http.get("/api/v1/dlq").status_code == 503
    assert act(letters, "replay", "events-0-0")[0] == 503


def test_given_a_letter_without_its_records_value_then_it_is_not_replayed(letters: Process) -> None:
    """An empty record would stand on the user's topic in its place."""
    letters.bus.logs.append(EVENTS, b"", *error(offset=42, kind="too_large"), ("tidegate.error.left_out", b"6000000"))
    status, answer = act(letters, "replay", "events-0-2")
    assert (status, letters.bus.produced) == (400, [])
    assert "has no value" in answer["detail"]
