"""Receipts that do not come on their topic, or not soon: 202, the row in the store, and whose answer it is."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import (
    A_WHILE,
    NOW,
    PATIENT,
    PUT_SCHEDULE,
    SHARDS,
    SPEC,
    TOPICS,
    FakeBus,
    Process,
    a_run,
    accepted,
)
from tidegate_api.bus_clients import Bus
from tidegate_api.requests import receipt_waiters as receipts
from tidegate_api.requests.receipt_lookup import Sought, StoredAnswers
from tidegate_api.requests.receipt_waiters import ReceiptWaiters
from tidegate_api.requests.request_submission import Timing
from tidegate_api.routes.requests import PENDING_MS_MAX
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows.effects import EndOffsets, NotProduced, Outcome, Produce, Produced
from tidegate_core.rows.receipt import StoredReceipt, subject_of
from tidegate_core.rows.store_operations import Item, Key, Page, RangeRead
from tidegate_ports.bus import Record, Settled
from tidegate_ports.store import PartlyRead, StoreUnavailable
from tidegate_telemetry.open_transactions import OWN_PATIENCE_MS

PATIENCE_S = 20.0
MESSAGE = {"namespace": "orders", "topic": "orders.reminders", "after": "1h", "payload": {"order": 17}}


def silent(_: Any) -> None:
    """An owner who says nothing on the topic."""


def test_given_no_receipt_then_202_with_a_location_that_answers_later(process: Process) -> None:
    process.bus.owner = silent
    answer = process.http.delete(PUT_SCHEDULE)
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    location = answer.headers["Location"]
    request_id = answer.json()["request_id"]
    assert location.startswith(f"/api/v1/requests/flights/{request_id}?")
    assert process.http.get(location).status_code == 202
    put_receipt(process, accepted({"id": request_id, "namespace": "flights", "name": "land-day"}))
    assert process.http.get(location).json()["status"] == "accepted"
    assert process.http.get(f"/api/v1/requests/flights/{request_id}").json()["status"] == "accepted"
    assert process.http.get(f"/api/v1/requests/other/{request_id}").status_code == 404


def test_given_a_process_whose_clock_is_behind_that_of_who_sent_it_then_a_request_is_pending_there_as_well(
    process: Process,
) -> None:
    """The chart has two of them: the other one said that no receipt is kept of what was on its way."""
    process.bus.owner = silent
    location = process.http.delete(PUT_SCHEDULE).headers["Location"]
    process.clock.now -= 5
    assert process.http.get(location).status_code == 202
    process.clock.now -= PENDING_MS_MAX
    assert process.http.get(location).status_code == 404
    process.clock.now += 2 * PENDING_MS_MAX + 10
    assert process.http.get(location).status_code == 404


def put_receipt(process: Process, receipt: Receipt, subject: str = "", **said: Any) -> None:
    """Stores it as its owner would; what is `said` besides stands in its body, as a newer release would write it."""
    shard = schedule_shard("flights", receipt.name or "land-day", SHARDS)
    row = StoredReceipt(
        request_id=receipt.request_id,
        namespace=receipt.namespace,
        subject=subject,
        body=json.dumps({**json.loads(receipt.to_json()), **said}, separators=(",", ":")),
        expires_at=NOW,
    )
    process.put(row, row.key(shard))


@pytest.mark.parametrize("timing", [PATIENT])
def test_given_receipt_only_in_the_store_then_it_is_found_there(process: Process) -> None:
    def store_only(document: Any) -> None:
        subject = subject_of(parse_request(json.dumps(document).encode()))
        put_receipt(process, accepted(document, version=9), subject)

    process.bus.owner = store_only
    answer = process.http.delete(PUT_SCHEDULE)
    assert (answer.status_code, answer.json()["version"]) == (200, 9)


def test_given_acknowledgements_that_come_behind_their_receipts_then_a_list_has_all_answers(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = process.bus

    def produce_many(orders: Sequence[Produce], settled: Settled) -> None:
        outcomes = [bus._produced(order) for order in orders]
        asyncio.get_running_loop().call_later(0.01, settled, outcomes)

    monkeypatch.setattr(bus, "produce_many", produce_many)
    answer = process.http.post("/api/v1/messages", json=[MESSAGE] * 3)
    assert (answer.status_code, {item["status"] for item in answer.json()["items"]}) == (200, {"accepted"})


@pytest.mark.parametrize("timing", [Timing(first_poll_s=0.2, poll_again_s=0.2, pending_after_s=0.2)])
def test_given_an_acknowledgement_that_comes_when_patience_is_at_its_end_then_its_receipt_is_waited_for_all_the_same(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the broker took late has the time of a first look: its owner has not had it for longer."""
    bus = process.bus

    def produce_many(orders: Sequence[Produce], settled: Settled) -> None:
        loop = asyncio.get_running_loop()

        def taken() -> None:
            settled([Produced() for _ in orders])
            loop.call_later(0.05, answer)

        def answer() -> None:
            for order in orders:
                bus._produced(order)

        loop.call_later(0.5, taken)

    monkeypatch.setattr(bus, "produce_many", produce_many)
    answer = process.http.post("/api/v1/messages", json=[MESSAGE] * 3)
    assert (answer.status_code, {item["status"] for item in answer.json()["items"]}) == (200, {"accepted"})


def test_given_a_lost_acknowledgement_and_a_receipt_then_the_receipt_is_the_answer(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a review: it was in hand, and thrown away for `send it again`."""
    bus = process.bus
    produced = bus._produced

    def taken_and_not_told(order: Produce) -> Outcome:
        produced(order)
        return NotProduced("unavailable", "timed out")

    monkeypatch.setattr(bus, "_produced", taken_and_not_told)
    answer = process.http.post("/api/v1/messages", json=[MESSAGE] * 2)
    assert (answer.status_code, {item["status"] for item in answer.json()["items"]}) == (200, {"accepted"})
    assert process.http.post("/api/v1/messages", json=MESSAGE).status_code == 200


LIST = [{**SPEC, "name": f"s-{number}"} for number in range(20)]


def stored_only(process: Process) -> None:
    """Has the owner write receipts into the store alone."""

    def owner(document: Any) -> None:
        put_receipt(process, accepted(document, version=9), subject_of(parse_request(json.dumps(document).encode())))

    process.bus.owner = owner


@pytest.mark.parametrize("timing", [PATIENT])
def test_given_receipts_of_a_list_only_in_the_store_then_one_call_finds_them_all(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    get = process.store.get

    def counting(wanted: Sequence[Key]) -> Mapping[Key, Item]:
        if any(key.sk.startswith("RQ#") for key in wanted):
            asked.append(len(wanted))
        return get(wanted)

    stored_only(process)
    monkeypatch.setattr(process.store, "get", counting)
    answer = process.http.post("/api/v1/schedules", json=LIST)
    assert (answer.status_code, {item["version"] for item in answer.json()["items"]}) == (200, {9})
    assert asked == [len(LIST)]


@pytest.mark.parametrize("timing", [replace(PATIENT, first_poll_s=0.5)])
def test_given_receipts_of_a_list_that_still_come_then_none_is_looked_for_until_they_have_come(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the benchmark of creates: lists that took longer than a first look had the store asked for each message, over and over,
    which took from the store what owners needed to write them.
    """
    bus, get = process.bus, process.store.get
    asked: list[list[Key]] = []
    came: list[str] = []
    came_by_then: list[int] = []

    def counting(wanted: Sequence[Key]) -> Mapping[Key, Item]:
        if receipts := [key for key in wanted if key.sk.startswith("RQ#")]:
            asked.append(receipts)
            came_by_then.append(len(came))
        return get(wanted)

    def owner(document: Any) -> Receipt | None:
        came.append(document["name"])
        if document["name"] != "s-7":
            return accepted(document, version=9)
        put_receipt(process, accepted(document, version=9), subject_of(parse_request(json.dumps(document).encode())))
        return None

    def produce_many(orders: Sequence[Produce], settled: Settled) -> None:
        settled([Produced() for _ in orders])
        for number, order in enumerate(orders):
            asyncio.get_running_loop().call_later(0.05 * (number + 1), bus._produced, order)

    bus.owner = owner
    monkeypatch.setattr(process.store, "get", counting)
    monkeypatch.setattr(bus, "produce_many", produce_many)
    answer = process.http.post("/api/v1/schedules", json=LIST)
    assert (answer.status_code, {item["version"] for item in answer.json()["items"]}) == (200, {9})
    assert ([len(keys) for keys in asked], came_by_then) == ([1], [len(LIST)])


@pytest.mark.parametrize("timing", [A_WHILE])
def test_given_one_stored_receipt_that_makes_the_look_fail_then_the_others_of_its_list_have_their_answers(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left by a review: 500 for the whole list, and the ids that this process had given were told to nobody."""
    of_all = StoredAnswers.of_all

    def failing(answers: StoredAnswers, wanted: Sequence[Sought]) -> list[Receipt | Exception | None]:
        if any(sought.request.id == "m-1" for sought in wanted):
            raise AttributeError("planted")
        return of_all(answers, wanted)

    monkeypatch.setattr(StoredAnswers, "of_all", failing)
    process.bus.owner = lambda document: None if document["id"] == "m-1" else accepted(document)
    answer = process.http.post("/api/v1/messages", json=[{**MESSAGE, "id": f"m-{number}"} for number in range(3)])
    items = answer.json()["items"]
    assert (answer.status_code, [item["status"] for item in items]) == (202, ["accepted", "pending", "accepted"])
    assert items[1]["errors"][0]["hint"] == "repeat it with the id m-1"
    bugs = [fields["problem"] for event, fields in process.notices if event == "api_bug"]
    assert bugs[:1] == ["AttributeError('planted')"]


def newer_node(process: Process, **said: Any) -> Callable[[Mapping[str, Any]], None]:
    """An owner of a newer release, whose receipts lie in the store alone; that of schedule `b` says more than this release knows."""

    def owner(document: Mapping[str, Any]) -> None:
        subject = subject_of(parse_request(json.dumps(document).encode()))
        more = said if document["name"] == "b" else {}
        put_receipt(process, accepted(document, version=9), subject, **more)

    return owner


NEWER_FIELDS = {"note": "new", "discarded": {"jobs": ["j"], "evidence": {}, "ticks": 3}}


@pytest.mark.parametrize("timing", [PATIENT])
def test_given_a_stored_receipt_with_fields_of_a_newer_release_then_they_are_ignored(process: Process) -> None:
    process.bus.owner = newer_node(process, **NEWER_FIELDS)
    answer = process.http.put("/api/v1/schedules/flights/b", json={**SPEC, "name": "b"})
    assert (answer.status_code, answer.json()["version"]) == (200, 9)
    assert answer.json()["discarded"] == {"jobs": ["j"], "evidence": {}, "messages": 0}
    shown = process.http.get(f"/api/v1/requests/flights/{answer.json()['request_id']}")
    assert (shown.status_code, shown.json()["status"]) == (200, "accepted")


def test_given_a_receipt_with_fields_of_a_newer_release_on_the_topic_then_they_are_ignored(process: Process) -> None:
    def owner(document: Mapping[str, Any]) -> None:
        body = {**json.loads(accepted(document, version=9).to_json()), **NEWER_FIELDS}
        record = Record(TOPICS.receipts, "0" * 32, 0, 7, NOW, document["id"].encode(), json.dumps(body).encode(), ())
        assert process.bus.listener is not None
        process.bus.listener.records(TOPICS.receipts, 0, [record])

    process.bus.owner = owner
    answer = process.http.delete(PUT_SCHEDULE)
    assert (answer.status_code, answer.json()["version"]) == (200, 9)


@pytest.mark.parametrize("timing", [PATIENT])
def test_given_a_stored_receipt_that_this_release_cannot_read_then_it_alone_is_pending_and_says_why(
    process: Process,
) -> None:
    """Found in review: 500 for the whole list, and each of its requests had been decided."""
    process.bus.owner = newer_node(process, status="postponed")
    answer = process.http.post("/api/v1/schedules", json=[{**SPEC, "name": name} for name in "abc"])
    items = answer.json()["items"]
    assert (answer.status_code, [item["status"] for item in items]) == (202, ["accepted", "pending", "accepted"])
    (error,) = items[1]["errors"]
    assert "this release cannot read its receipt (status is 'postponed'" in error["problem"]
    assert "use an API process of the nodes' release" in error["hint"]
    alone = process.http.put("/api/v1/schedules/flights/b", json={**SPEC, "name": "b"})
    request_id = alone.json()["request_id"]
    for asked in (
        alone,
        process.http.get(alone.headers["Location"]),
        process.http.get(f"/api/v1/requests/flights/{request_id}"),
    ):
        assert (asked.status_code, asked.json()["status"]) == (202, "pending")
        assert "this release cannot read its receipt" in asked.json()["errors"][0]["problem"]
        assert asked.headers["Location"] == alone.headers["Location"]
    assert not [event for event, _ in process.notices if event == "api_bug"]


@pytest.mark.parametrize("timing", [A_WHILE])
def test_given_a_receipt_that_the_store_throttles_then_the_others_of_its_list_are_found(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = process.store.get

    def throttling(wanted: Sequence[Key]) -> Mapping[Key, Item]:
        found = get(wanted)
        unread = [key for key, item in found.items() if '"name":"s-7"' in str(item.get("body"))]
        if unread:
            raise PartlyRead("throttled", {key: item for key, item in found.items() if key not in unread}, unread)
        return found

    stored_only(process)
    monkeypatch.setattr(process.store, "get", throttling)
    answer = process.http.post("/api/v1/schedules", json=LIST)
    pending = [item["name"] for item in answer.json()["items"] if item["status"] == "pending"]
    assert (answer.status_code, pending) == (202, ["s-7"])


@pytest.mark.parametrize("timing", [A_WHILE])
def test_given_a_list_behind_a_store_that_gives_no_answer_then_its_own_comes_in_time_and_one_thread_was_held(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: each asked by itself, on all threads of reads, for two minutes; 202 came after its client had gone."""
    begun: list[RangeRead] = []
    ended: list[RangeRead] = []
    answers = threading.Event()

    def silent_store(wanted: RangeRead) -> Page:
        begun.append(wanted)
        answers.wait(PATIENCE_S)
        ended.append(wanted)
        raise StoreUnavailable("no answer")

    process.bus.owner = silent
    monkeypatch.setattr(process.store, "query", silent_store)
    answer = process.http.post("/api/v1/messages", json=[MESSAGE] * 20)
    at_the_answer = (len(begun), len(ended))
    answers.set()
    assert (answer.status_code, {item["status"] for item in answer.json()["items"]}) == (202, {"pending"})
    assert at_the_answer == (1, 0)


def test_given_stored_receipt_of_another_request_under_the_id_then_it_is_not_the_answer(process: Process) -> None:
    process.bus.owner = lambda document: put_receipt(process, accepted(document, version=9), "something else")
    assert process.http.delete(PUT_SCHEDULE).status_code == 202


def test_given_receipt_of_another_namespace_under_the_same_id_then_it_is_not_the_answer(process: Process) -> None:
    """Ids are unique within a namespace only, and every process reads all receipts."""
    process.bus.owner = lambda document: accepted({**document, "namespace": "orders"})
    answer = process.http.delete(PUT_SCHEDULE, headers={"Idempotency-Key": "mine-1"})
    assert (answer.status_code, answer.json()["namespace"]) == (202, "flights")
    put_receipt(process, accepted({"id": "mine-1", "namespace": "orders"}))
    assert process.http.get(answer.headers["Location"]).status_code == 202


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"namespace": None, "name": None}, id="a control of the whole system"),
        pytest.param({"name": "land-night"}, id="another schedule"),
    ],
)
def test_given_receipt_of_a_request_about_something_else_under_the_same_id_then_it_is_not_the_answer(
    process: Process, other: dict[str, str | None]
) -> None:
    """Found in review: two at a time took one id, at two API processes, and one of them was told what became of the other's."""
    process.bus.owner = lambda document: accepted({**document, **other})
    answer = process.http.delete(PUT_SCHEDULE, headers={"Idempotency-Key": "mine-1"})
    assert (answer.status_code, answer.json()["name"]) == (202, "land-day")


@pytest.mark.parametrize("kind", ["runs", "jobs"])
def test_given_a_cancel_without_a_namespace_then_the_answer_that_names_it_is_taken_from_the_topic(
    process: Process, kind: str
) -> None:
    """The owner says of which namespace the run is; without this the stored receipt would be waited for."""
    thing = a_run().id
    process.bus.owner = lambda document: accepted({**document, "namespace": "flights"}, id=thing)
    answer = process.http.post(f"/api/v1/{kind}/{thing}/cancel", json={})
    assert (answer.status_code, answer.json()["namespace"]) == (200, "flights")


@pytest.mark.parametrize(
    ("body", "thing"),
    [
        pytest.param({}, a_run("other").id, id="of another run"),
        pytest.param({}, None, id="of no run"),
        pytest.param({"namespace": "orders"}, a_run().id, id="the request names another namespace"),
    ],
)
def test_given_receipt_under_the_id_of_a_cancel_but_of_something_else_then_it_is_not_the_answer(
    process: Process, body: dict[str, str], thing: str | None
) -> None:
    process.bus.owner = lambda document: accepted({**document, "namespace": "flights"}, id=thing)
    assert process.http.post(f"/api/v1/runs/{a_run().id}/cancel", json=body).status_code == 202


def test_given_unknown_request_then_404(process: Process) -> None:
    assert process.http.get("/api/v1/requests/flights/unknown").status_code == 404


def test_given_pending_request_after_an_hour_then_404(process: Process) -> None:
    process.bus.owner = silent
    location = process.http.delete(PUT_SCHEDULE).headers["Location"]
    process.clock.now += 3_600_001
    assert process.http.get(location).status_code == 404


def test_given_broker_is_down_then_503_with_the_id_to_repeat_under(process: Process) -> None:
    process.bus.failure = NotProduced("unavailable", "no broker")
    answer = process.http.delete(PUT_SCHEDULE, headers={"Idempotency-Key": "mine-2"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert answer.json()["request_id"] == "mine-2"


def test_given_start_then_receipts_are_read_from_the_end_that_was_found(process: Process) -> None:
    assert process.http.get("/readyz").status_code == 200
    assert process.bus.reader.assigned == {(TOPICS.receipts, 0): 100, (TOPICS.receipts, 1): 101}


def test_given_an_open_transaction_among_the_receipts_then_readyz_names_it_and_clients_stay(process: Process) -> None:
    """Every API process reads the same topic: one that is not ready would send its clients nowhere, and answers are in the store."""
    process.bus.stable = EndOffsets({f"{'0' * 32}/0": 40, f"{'0' * 32}/1": 101})
    services = process.http.app.state.services  # type: ignore[attr-defined]  # a Starlette application
    assert process.http.portal is not None
    for _ in range(2):
        process.http.portal.call(services.transactions.look)
        process.clock.now += OWN_PATIENCE_MS
    process.http.portal.call(services.transactions.look)
    answer = process.http.get("/readyz")
    assert (answer.status_code, answer.text.splitlines()[0]) == (200, "ok")
    assert "topic tidegate.receipts, topic partition 0: a transaction is open since " in answer.text
    assert 'tidegate_open_transactions{topic="tidegate.receipts"} 1.0' in process.http.get("/metrics").text


async def test_given_a_receipts_topic_that_grows_then_the_new_topic_partitions_are_read_from_their_first_record(
    bus: FakeBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those of the start were: an answer in another one came seconds late from the store, and never where it is not stored."""
    monkeypatch.setattr(receipts, "GROWTH_S", 0.01)
    desk = ReceiptWaiters(TOPICS.receipts, lambda event, **fields: None)
    reading = asyncio.create_task(desk.keep_reading(Bus(bus, bus, bus.reader, bus.logs, bus.logs)))
    try:
        for count in (2, 4, 4, 5):
            bus.topic_partitions = count
            asked = bus.asked_for_topics + 2
            async with asyncio.timeout(PATIENCE_S):
                while bus.asked_for_topics < asked:  # noqa: ASYNC110 - a turn of its loop tells nobody
                    await asyncio.sleep(0.001)
            assert sorted(number for _, number in bus.reader.assigned) == list(range(count))
    finally:
        reading.cancel()
    read = {number: offset for (_, number), offset in bus.reader.assigned.items()}
    assert read == {0: 100, 1: 101, 2: 0, 3: 0, 4: 0}
