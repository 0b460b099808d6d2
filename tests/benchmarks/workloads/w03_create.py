"""W3: how fast messages are created, by way and by name, beside what the store alone can take."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypedDict
from urllib.parse import urlsplit

from tests.benchmarks.rig.bulk_producer import REQUESTS, message, message_document
from tests.benchmarks.rig.call_recordings import Recording, recorded_creates
from tests.benchmarks.rig.call_replays import replay_s
from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.one_shot_messages import MICROSECONDS, units_each
from tests.benchmarks.rig.resource_meter import spent
from tests.benchmarks.rig.store_bounds import batched_rows_per_s
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload
from tests.support.cluster.cluster import TOPIC_PARTITIONS
from tests.support.cluster.until import now_ms

FAR_MS = 86_400_000
"""A day ahead: the messages are stored, and nothing of them is near."""
ROWS_KEYLESS, ROWS_KEYED = 2, 3
LIST_MAX = 1_000
"""Of the API's own."""
API_CONNECTIONS = 4
ANSWER_S = 120.0


class Named(TypedDict):
    """By what a create can be named: its request's id, its user's key, or nothing."""

    name: str | None
    key: str | None


Names: Final[Mapping[str, Callable[[str], Named]]] = {
    "plain": lambda _: {"name": None, "key": None},
    "id": lambda text: {"name": text, "key": None},
    "keyed": lambda text: {"name": None, "key": text},
}
"""`plain`: its offset names it. `id`: its request does. `keyed`: its user does, and may replace it."""


def measure(stack: Stack, parameters: Parameters) -> Figures:
    """Creates so many messages, and waits until all are stored."""
    count, way, naming = parameters["messages"], parameters["way"], parameters["naming"]
    prepared = _through_kafka if way == "kafka" else _through_api
    topic = stack.sink_topic()
    due_ms = now_ms() + FAR_MS
    recording = _recorded(count, due_ms, way, naming, stack.shards)
    for _ in range(parameters["warm_rounds"]):  # A store that has just begun is compiled while it is measured.
        batched_rows_per_s(stack.cluster.store, recording.batched_rows)
    prepared(stack, f"{topic}.warm", due_ms, parameters["warm_creates"], naming)()  # What creates ask for, is as well.
    stack.until_read()
    send = prepared(stack, topic, due_ms, count, naming)
    meter = stack.nodes_meter()
    begun = meter.read()
    send()
    stack.until_read()
    used = spent(begun, meter.read())
    rows_per_s = count * (ROWS_KEYED if naming == "keyed" else ROWS_KEYLESS) / used.wall_s
    store_per_s = batched_rows_per_s(stack.cluster.store, recording.batched_rows)
    bound_per_s = count / replay_s(stack.cluster.store, recording, stack.replay_logs())
    return {
        "created_per_s": count / used.wall_s,
        "rows_per_s": rows_per_s,
        "store_rows_per_s": store_per_s,
        "share_of_store": rows_per_s / store_per_s,
        "cpu_s": used.cpu_s,
        "cpu_us_each": used.cpu_s * MICROSECONDS / count,
        "rss_mib": used.rss_mib,
        **units_each(used.write_units, used.read_units, count),
        "bound_creates_per_s": bound_per_s,
        "share_of_bound": count / used.wall_s / bound_per_s,
    }


def _recorded(count: int, due_ms: int, way: str, naming: str, shards: int) -> Recording:
    """Returns the records and rows of as many creates by other names."""
    told = way == "api"  # It waits for the receipt of each.
    requests = [
        message(number, due_ms + number, "recorded", shards, **Names[naming](f"recorded-{number}"), receipt=told)
        for number in range(count)
    ]
    holders = TOPIC_PARTITIONS if naming == "plain" else 1
    return recorded_creates([request.value for request in requests], shards, holders)


def _through_kafka(stack: Stack, topic: str, due_ms: int, count: int, naming: str) -> Callable[[], None]:
    """Returns what sends the requests: they are written before anything is measured."""
    names = Names[naming]
    records = [
        message(number, due_ms + number, topic, stack.shards, **names(f"{topic}-{number}")) for number in range(count)
    ]
    return lambda: stack.producer.send(REQUESTS, records)


def _through_api(stack: Stack, topic: str, due_ms: int, count: int, naming: str) -> Callable[[], None]:
    """Returns what sends the requests, likewise."""
    names = Names[naming]
    documents = [
        message_document(number, due_ms + number, topic, **names(f"{topic}-{number}")) for number in range(count)
    ]
    bodies = [json.dumps(documents[start : start + LIST_MAX]) for start in range(0, count, LIST_MAX)]

    def send() -> None:
        with ThreadPoolExecutor(API_CONNECTIONS) as threads:
            statuses = list(threads.map(lambda each: _post(stack.cluster.api.url, each), bodies))
        assert set(statuses) <= {200, 202}, statuses

    return send


def _post(url: str, body: str) -> int:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=ANSWER_S)
    try:
        connection.request("POST", "/api/v1/messages", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def _cases(messages: int, warm_rounds: int, warm_creates: int) -> list[Case]:
    sizes = {"messages": messages, "warm_rounds": warm_rounds, "warm_creates": warm_creates}
    return [
        Case(f"{way} {naming}", {**sizes, "way": way, "naming": naming})
        for way in ("kafka", "api")
        for naming in Names
        if (way, naming) != ("api", "plain")  # The API gives each request an id.
    ]


WORKLOAD = Workload(
    name="W3",
    title="20,000 creates: Kafka and the API in bulk; plain, with an id, under a user's key; rows a second beside the store's own",
    measure=measure,
    full=_cases(messages=20_000, warm_rounds=3, warm_creates=10_000),
    smoke=_cases(messages=50, warm_rounds=1, warm_creates=20),
)
