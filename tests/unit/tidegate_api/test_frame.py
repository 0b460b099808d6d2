"""Around the routes: errors, ids, probes, metrics, the description, the settings."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive

from tests.unit.tidegate_api.conftest import PUT_SCHEDULE, SPEC, FakeBus, Process, a_run, put_schedule, shard_of
from tidegate_api import main, openapi
from tidegate_api.bootstrap import SettingsRefused, build, dynamo_settings, kafka_settings, load
from tidegate_api.http import middleware
from tidegate_api.http.host_check import Hosts
from tidegate_api.http.middleware import RequestFrame
from tidegate_api.http.problem_responses import BodyTooLarge, BodyUnfinished, NoRoomForBody, install
from tidegate_api.http.request_bodies import (
    BATCH_BYTES_MAX,
    BODY_BYTES_MAX,
    LARGE_BYTES,
    LARGE_TOGETHER_BYTES,
    Room,
    bounded,
    read_json,
)
from tidegate_api.settings import OTHERS, ApiSettings, GateSettings, SettingsInvalid, read_secrets
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.store_operations import Delete, Put
from tidegate_node.settings import NodeSettings
from tidegate_ports.store import StoreUnavailable
from tidegate_telemetry.log_setup import Notifier
from tidegate_telemetry.metric_names import API_METRICS
from tidegate_telemetry.metrics import Metrics

ALLOWED = {"TIDEGATE_KAFKA__ALLOW_PLAINTEXT": "true"}
PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("PATCH", "/api/v1/runs", 405),
        ("GET", "/api/v1/runs?page_size=0", 400),
        ("GET", "/api/v1/runs/not-a-run", 400),
        ("GET", "/api/v1/schedules?page_size=x", 400),
        ("GET", "/api/v1/occurrences", 400),
        ("GET", "/api/v1/occurrences?namespace=a&since=yesterday", 400),
        ("POST", "/api/v1/requests", 400),
        ("POST", "/api/v1/events", 400),
        ("POST", "/api/v1/runs/0001-mfrggzdfmztwq2lkn5wg63tqoe/start", 400),
    ],
)
def test_given_faulty_request_then_a_problem_document(process: Process, method: str, path: str, status: int) -> None:
    answer = process.http.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    body = answer.json()
    assert (body["status"], body["instance"]) == (status, path.partition("?")[0])
    assert body["detail"]
    assert answer.headers["X-Request-Id"]


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b"\xff", b"7", b'"text"'])
def test_given_body_that_is_no_object_then_400(process: Process, content: bytes) -> None:
    for path in ("/api/v1/requests", "/api/v1/events", "/api/v1/messages"):
        answer = process.http.post(path, content=content)
        assert (answer.status_code, answer.headers["content-type"]) == (400, PROBLEM)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", None])
@pytest.mark.parametrize("content", [b"\xff", b"[" * 100_000, b'{"attempt": 1, "driver": "\\ud800"}', b"7"])
def test_given_report_that_cannot_be_read_then_400(process: Process, content: bytes, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    path = "/api/v1/runs/0001-mfrggzdfmztwq2lkn5wg63tqoe/start"
    answer = process.http.post(path, content=content, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (400, PROBLEM)


@pytest.mark.parametrize(
    ("path", "bytes_max"),
    [
        ("/api/v1/runs/0001-mfrggzdfmztwq2lkn5wg63tqoe/start", 1_048_576),
        ("/api/v1/runs/0001-mfrggzdfmztwq2lkn5wg63tqoe/finished", 1_048_576),
        ("/api/v1/runs/0001-mfrggzdfmztwq2lkn5wg63tqoe/cancel", 1_048_576),
        ("/api/v1/schedules/flights/land-day/suspend", 1_048_576),
        ("/api/v1/requests", 1_048_576),
        ("/api/v1/messages", 16 * 1_048_576),
        ("/api/v1/events", 16 * 1_048_576),
    ],
)
def test_given_body_above_its_routes_bound_then_413_for_every_route(
    process: Process, path: str, bytes_max: int
) -> None:
    answer = process.http.post(path, content=b"x" * (bytes_max + 1))
    assert (answer.status_code, answer.headers["content-type"]) == (413, PROBLEM)
    assert f"more than {bytes_max} bytes" in answer.json()["detail"]
    assert process.http.post(path, content=b"x" * bytes_max).status_code == 400  # No JSON, but read.


@pytest.mark.parametrize("declared", [None, "150000000"])
async def test_given_an_endless_body_then_no_more_than_the_bound_is_taken_in(declared: str | None) -> None:
    piece, taken = b"x" * 100_000, 0

    async def endless() -> Message:
        nonlocal taken
        taken += len(piece)
        return {"type": "http.request", "body": piece, "more_body": True}

    headers = [] if declared is None else [(b"content-length", declared.encode())]
    scope = {"type": "http", "path": "/api/v1/requests", "headers": headers}
    with bounded(scope, endless, Room()) as receive:
        for _ in range(0 if declared else BODY_BYTES_MAX // len(piece)):
            await receive()
        with pytest.raises(BodyTooLarge):
            await receive()
    assert taken <= (0 if declared else BODY_BYTES_MAX) + len(piece)


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("DELETE", "/api/v1/schedules/a/b", {"If-Match": '"' + "9" * 5_000 + '"'}),
        ("GET", "/api/v1/runs/0001-mfrggzdfmztwq2lkn5wg63tqoe/logs?attempt=" + "9" * 300, {}),
        ("GET", "/api/v1/schedules?page_token=" + base64.urlsafe_b64encode(b"[" * 3_000).decode().rstrip("="), {}),
    ],
)
def test_given_numbers_and_tokens_of_any_size_then_400(
    process: Process, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = process.http.request(method, path, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (400, PROBLEM)


@pytest.mark.parametrize(
    ("method", "path", "problem"),
    [
        ("PUT", f"{PUT_SCHEDULE}?dryrun=true", "dryrun: is not a parameter of this route; did you mean dry_run?"),
        (
            "DELETE",
            f"{PUT_SCHEDULE}?expectedVersion=3",
            "expectedVersion: is not a parameter of this route; did you mean",
        ),
        ("POST", f"{PUT_SCHEDULE}/suspend?mode=hold", "mode: is not a parameter of this route"),
        ("GET", "/api/v1/runs?schedul=land-day", "schedul: is not a parameter of this route; did you mean schedule?"),
        ("GET", "/api/v1/runs/0001-mfrggzdfmztwq2lkn5wg63tqoe?attempt=2", "attempt: is not a parameter of this route"),
    ],
)
def test_given_a_parameter_that_nobody_reads_then_400_and_nothing_is_done(
    process: Process, method: str, path: str, problem: str
) -> None:
    """A dry run that was mistyped was an apply."""
    put_schedule(process)
    answer = process.http.request(method, path, json=SPEC if method == "PUT" else None)
    assert (answer.status_code, answer.headers["content-type"]) == (400, PROBLEM)
    assert answer.json()["detail"].startswith(problem)
    assert not process.bus.produced


def test_given_bug_then_500_without_its_inside(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(process.store, "query", breaks)
    answer = process.http.get("/api/v1/schedules", headers={"X-Request-Id": "mine"})
    assert (answer.status_code, answer.headers["X-Request-Id"]) == (500, "mine")
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text
    assert ("api_bug", "mine") in [(event, fields.get("request_id")) for event, fields in process.notices]


def test_given_store_is_silent_then_503(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: Any) -> None:
        raise StoreUnavailable("no answer")

    monkeypatch.setattr(process.store, "query", silent)
    answer = process.http.get("/api/v1/schedules")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


def test_given_unusable_request_id_then_another_is_made(process: Process) -> None:
    answer = process.http.get("/livez", headers={"X-Request-Id": "a b\t"})
    assert answer.headers["X-Request-Id"] != "a b\t"


def test_given_cluster_without_map_then_not_ready_and_init_is_named(process: Process) -> None:
    process.store.write([Delete(MAP_KEY)])
    answer = process.http.get("/readyz")
    assert (answer.status_code, process.http.get("/livez").status_code) == (503, 200)
    assert "tidegate init" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/readyz", "/api/v1/schedules", "/api/v1/shards"])
def test_given_a_map_that_this_release_cannot_read_then_503_says_so(process: Process, path: str) -> None:
    """It was a bug to who asked, 500 and a stack trace in the log, where nodes say what it is."""
    process.store.write([Put(MAP_KEY, {"pk": "MAP", "sk": "MAP", "version": 2, "n": 4, "shards": 8, "history": [{}]})])
    answer = process.http.get(path)
    assert (answer.status_code, answer.headers["content-type"], "Retry-After" in answer.headers) == (503, PROBLEM, True)
    assert "item MAP" in answer.json()["detail"]


@pytest.fixture
def down_bus(bus: FakeBus) -> FakeBus:
    bus.is_down = True
    return bus


def test_given_broker_down_at_start_then_alive_but_not_ready_and_programs_that_reach_it_pass_the_gate(
    down_bus: FakeBus, process: Process
) -> None:
    assert down_bus.reader.assigned == {}
    assert process.http.get("/livez").status_code == 200
    assert process.http.get("/readyz").status_code == 503
    run = a_run()
    process.put(run, run.key(shard_of(run)))
    assert process.report(run, "start").status_code == 200


def test_given_requests_then_metrics_count_them_by_route(process: Process) -> None:
    process.http.get("/api/v1/schedules/flights/none")
    text = process.http.get("/metrics").text
    wanted = 'tidegate_api_requests_total{method="GET",route="/api/v1/schedules/{namespace}/{name}",status="404"} 1.0'
    assert wanted in text


def test_given_methods_of_anybodys_making_then_the_metrics_do_not_grow(process: Process) -> None:
    for number in range(3):
        assert process.http.request(f"MADE-UP-{number}", "/api/v1/runs").status_code == 405
    assert process.http.patch("/api/v1/runs").status_code == 405
    text = process.http.get("/metrics").text
    assert "MADE-UP" not in text
    assert 'tidegate_api_requests_total{method="ANY",route="/api/v1/runs",status="405"} 3.0' in text
    assert 'tidegate_api_requests_total{method="PATCH",route="/api/v1/runs",status="405"} 1.0' in text


def test_given_the_routes_then_the_committed_description_is_theirs() -> None:
    """`python -m tidegate_api.openapi docs/openapi.json` writes it anew."""
    committed = Path(__file__).parents[3] / "docs" / "openapi.json"
    assert committed.read_text(encoding="utf-8") == openapi.text()


def test_given_description_then_every_reference_leads_somewhere(process: Process) -> None:
    served = process.http.get("/openapi.json").json()
    text = json.dumps(served)
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(served["components"]["schemas"])
    assert served == openapi.document()
    assert "HTTPValidationError" not in text


def test_given_writes_without_a_receipt_yet_then_the_description_has_their_answers(process: Process) -> None:
    process.bus.owner = lambda document: None
    paths = openapi.document()["paths"]
    schedule = "/api/v1/schedules/{namespace}/{name}"
    calls: list[tuple[str, str, Any, str]] = [
        ("PUT", schedule, SPEC, "ReceiptView"),
        ("DELETE", schedule, None, "ReceiptView"),
        ("POST", f"{schedule}/suspend", {}, "ReceiptView"),
        ("POST", "/api/v1/schedules", [SPEC], "Page_ReceiptView_"),
        ("POST", "/api/v1/firing/stop", {}, "ReceiptView"),
    ]
    for method, path, sent, form in calls:
        url = path.format(namespace=SPEC["namespace"], name=SPEC["name"])
        answer = process.http.request(method, url, json=sent)
        told = paths[path][method.lower()]["responses"][str(answer.status_code)]
        assert answer.status_code == 202
        assert told["content"] == {answer.headers["content-type"]: {"schema": openapi.ref(form)}}
        assert told["headers"].keys() == {"Location"}
        asked = process.http.get(answer.headers["Location"])
        told = paths["/api/v1/requests/{namespace}/{request_id}"]["get"]["responses"][str(asked.status_code)]
        assert (asked.status_code, told["headers"].keys()) == (202, {"Location"})


def test_given_every_route_with_a_receipt_then_its_202_and_its_etag_are_described() -> None:
    answers = {
        (method, path): operation["responses"]
        for path, operations in openapi.document()["paths"].items()
        for method, operation in operations.items()
    }
    with_receipt = {where for where, told in answers.items() if "ReceiptView" in json.dumps(told["200"])}
    assert with_receipt == {where for where, told in answers.items() if "202" in told}
    assert len(with_receipt) == 18
    with_version = {path for (method, path), told in answers.items() if method == "get" and "headers" in told["200"]}
    assert with_version == {"/api/v1/schedules/{namespace}/{name}", "/api/v1/sources/{namespace}/{name}"}
    assert answers["put", "/api/v1/schedules/{namespace}/{name}"]["200"]["headers"].keys() == {"ETag"}


def test_given_a_refusal_then_all_fields_of_its_document_are_described(process: Process) -> None:
    put_schedule(process, SPEC)
    query = {"dry_run": "true", "expected_version": "7"}
    refused = process.http.put(PUT_SCHEDULE, json=SPEC, params=query).json()
    assert refused["reason"] == "conflict"
    assert refused.keys() <= openapi.document()["components"]["schemas"]["ProblemView"]["properties"].keys()


def test_given_environment_and_file_then_the_adapters_take_them(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("api: {port: 9}\nkafka: {linger_ms: 7, client_id: c}\nhealth: {port: 1}\n")
    environment = {
        "TIDEGATE_CONFIG": str(file),
        "TIDEGATE_API__PORT": "8123",
        "TIDEGATE_KAFKA__BOOTSTRAP_SERVERS": "broker:1",
        "TIDEGATE_KAFKA__ALLOW_PLAINTEXT": "true",
        "TIDEGATE_DYNAMODB__READ_TIMEOUT_S": "1.5",
    }
    settings = load(environment)
    assert (settings.api.host, settings.api.port) == ("127.0.0.1", 8123)
    kafka = kafka_settings(settings)
    assert (kafka.bootstrap_servers, kafka.linger_ms, kafka.client_id) == ("broker:1", 7, "c")
    assert dynamo_settings(settings).read_timeout_s == 1.5


def test_given_a_setting_that_only_nodes_read_then_the_api_leaves_it_alone() -> None:
    """One file of settings serves all processes, and so does the chart's: what the API does not know may be a typing error otherwise."""
    of_nodes = NodeSettings.model_fields.keys() - ApiSettings.model_fields.keys()
    assert {name.upper().partition("_")[0] for name in of_nodes} <= set(OTHERS)
    load(ALLOWED | {"TIDEGATE_OVERLOAD__LAG_MS": "2000"})


def test_given_a_bound_on_large_bodies_then_one_batch_has_to_fit() -> None:
    assert load(ALLOWED).api.large_bodies_mib_max == 48
    assert load(ALLOWED | {"TIDEGATE_API__LARGE_BODIES_MIB_MAX": "16"}).api.large_bodies_mib_max == 16
    with pytest.raises(SettingsRefused, match="large_bodies_mib_max"):
        load(ALLOWED | {"TIDEGATE_API__LARGE_BODIES_MIB_MAX": "15"})


def test_given_nothing_then_kafka_has_the_apis_own_defaults() -> None:
    kafka = kafka_settings(load(ALLOWED))
    assert (kafka.client_id, kafka.delivery_ms_max) == ("tidegate-api", 5_000)


def test_given_an_open_connection_that_nobody_allowed_then_nothing_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TIDEGATE_KAFKA__ALLOW_PLAINTEXT", raising=False)
    assert main.run() == main.EXIT_CONFIG
    assert "kafka: security_protocol PLAINTEXT does not encrypt" in capsys.readouterr().err


def test_given_a_property_that_only_the_client_knows_then_the_api_says_which_before_it_serves(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 32)
    given = {"TIDEGATE_GATE__SECRET_FILE": str(secret), "TIDEGATE_DYNAMODB__REGION": "eu-central-1"}
    settings = load(ALLOWED | given | {"TIDEGATE_KAFKA__EXTRA": '{"security.protokoll": "ssl"}'})
    with pytest.raises(SettingsInvalid, match=r"security\.protokoll"):
        build(settings, Notifier(Metrics(API_METRICS)), Metrics(API_METRICS))


@pytest.mark.parametrize(
    ("given", "said"),
    [({}, "dynamodb.region is not set"), ({"TIDEGATE_DYNAMODB__ENDPOINT_URL": "dynamo:8000"}, "dynamodb: ")],
)
def test_given_a_store_that_no_client_can_be_made_for_then_the_api_says_why(
    given: dict[str, str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 32)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name, value in (ALLOWED | given | {"TIDEGATE_GATE__SECRET_FILE": str(secret)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(main, "set_up_logs", lambda *_: None)
    assert main.run() == main.EXIT_CONFIG
    assert capsys.readouterr().err.startswith(f"tidegate api: {said}")


def test_given_unknown_setting_of_the_store_then_it_is_named() -> None:
    with pytest.raises(SettingsInvalid, match="did you mean table_prefix"):
        dynamo_settings(load(ALLOWED | {"TIDEGATE_DYNAMODB__TABLE_PREFX": "x"}))


def test_given_secret_file_then_it_has_to_be_there_and_long_enough(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    with pytest.raises(SettingsInvalid, match="is not set"):
        read_secrets(GateSettings())
    with pytest.raises(SettingsInvalid, match="No such file"):
        read_secrets(GateSettings(secret_file=file))
    file.write_text("short\n")
    with pytest.raises(SettingsInvalid, match="holds 5 characters"):
        read_secrets(GateSettings(secret_file=file))
    file.write_text("s" * 32 + "\n")
    assert read_secrets(GateSettings(secret_file=file)) == (b"s" * 32,)


def test_given_a_page_of_another_site_then_its_writes_are_refused(process: Process) -> None:
    event = {"type": "custom.x", "namespace": "a"}
    answer = process.http.post("/api/v1/events", json=event, headers={"Origin": "http://evil.example"})
    assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM)
    assert process.bus.produced == []


@pytest.mark.parametrize(
    ("listens", "host", "origin", "status"),
    [
        ("127.0.0.1", "localhost:8080", "http://localhost:8080", 200),
        ("127.0.0.1", "127.0.0.1:8080", "http://127.0.0.1:8080", 200),
        ("::1", "[::1]:8080", "http://[::1]:8080", 200),
        ("tidegate.example", "tidegate.example", "https://tidegate.example", 200),
        ("127.0.0.1", "localhost:8080", None, 200),
        # A page can have its own name resolved to this machine: both headers then name it.
        ("127.0.0.1", "evil.example:8080", "http://evil.example:8080", 403),
        ("127.0.0.1", "localhost:8080", "http://localhost:9090", 403),
        ("127.0.0.1", "[::1", "http://[::1", 403),
        ("127.0.0.1", "localhost:8080", "null", 403),
        # Listening everywhere, a proxy in front gives it any name.
        ("0.0.0.0", "tidegate.example", "https://tidegate.example", 200),
        ("0.0.0.0", "tidegate.example", "https://evil.example", 403),
    ],
)
async def test_given_origin_and_host_then_only_pages_of_this_host_write(
    listens: str, host: str, origin: str | None, status: int
) -> None:
    headers = {"Host": host} if origin is None else {"Host": host, "Origin": origin}
    assert await _status(Hosts(listens), "POST", headers) == status


@pytest.mark.parametrize("origin", [{}, {"Origin": "http://evil.example:8080"}])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    ("listens", "host"),
    [
        ("127.0.0.1", "evil.example:8080"),
        ("127.0.0.1", "evil.example"),
        ("127.0.0.2", "127.0.0.2.evil.example:8080"),
        ("localhost", "localhost.evil.example"),
        ("::1", "evil.example:8080"),
        ("127.0.0.1", "192.0.2.1:8080"),
        ("127.0.0.1", "[2001:db8::1]:8080"),
        ("127.0.0.1", ""),
        ("127.0.0.1", "[::1"),
    ],
)
async def test_given_loopback_asked_by_a_name_of_others_then_refused_whatever_the_method(
    listens: str, host: str, method: str, origin: dict[str, str]
) -> None:
    """A page can have its own name resolved to this machine; its reads are then of the same origin and carry none."""
    assert await _status(Hosts(listens, "http://tidegate.internal:8080"), method, {"Host": host, **origin}) == 403


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("listens", "headers"),
    [
        ("127.0.0.1", {"Host": "127.0.0.1:8080"}),
        ("127.0.0.1", {"Host": "127.0.0.1"}),
        ("127.0.0.1", {"Host": "LocalHost:8080"}),
        ("127.0.0.1", {"Host": "127.0.0.2:8080"}),
        ("127.0.0.9", {"Host": "127.0.0.9:8080"}),
        ("LOCALHOST", {"Host": "localhost"}),
        ("::1", {"Host": "[::1]:8080"}),
        ("::1", {"Host": "[::1]"}),
        ("::1", {"Host": "[0:0:0:0:0:0:0:1]:8080"}),
        # A program in a container has a name of its own for this machine, and the gate's URL says which.
        ("127.0.0.1", {"Host": "tidegate.internal:8080"}),
        ("127.0.0.1", {}),
        # Reached by names that it cannot know, or by an address that anybody may ask.
        ("0.0.0.0", {"Host": "any.example"}),
        ("::", {"Host": "any.example"}),
        ("192.0.2.1", {"Host": "any.example"}),
    ],
)
async def test_given_a_name_of_its_own_then_the_api_answers(listens: str, headers: dict[str, str], method: str) -> None:
    assert await _status(Hosts(listens, "http://Tidegate.internal:8080"), method, headers) == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/api/v1/schedules", "/openapi.json"])
def test_given_a_page_whose_name_leads_to_loopback_then_it_reads_nothing(process: Process, path: str) -> None:
    answer = process.http.get(path, headers={"Host": "evil.example:8080"})
    assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM)
    assert "TIDEGATE_API__HOST" in answer.json()["detail"]
    assert process.http.get(path).status_code != 403


def _sent(size: int, *, declared: bool, room: Room) -> AbstractContextManager[Receive]:
    """A request that is under way, whose body comes in two pieces."""
    pieces = [b"x" * (size // 2), b"x" * (size - size // 2)]

    async def receive() -> Message:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    headers = [(b"content-length", str(size).encode())] if declared else []
    return bounded({"type": "http", "path": "/api/v1/messages", "headers": headers}, receive, room)


@pytest.mark.parametrize("declared", [True, False])
async def test_given_large_bodies_that_take_all_the_room_then_one_more_is_refused_and_small_ones_are_not(
    declared: bool,
) -> None:
    room = Room(LARGE_TOGETHER_BYTES)
    with ExitStack() as under_way:
        for _ in range(LARGE_TOGETHER_BYTES // BATCH_BYTES_MAX):
            receive = under_way.enter_context(_sent(BATCH_BYTES_MAX, declared=declared, room=room))
            await receive()
            await receive()
        with _sent(LARGE_BYTES + 2, declared=declared, room=room) as receive:
            if not declared:
                await receive()
            with pytest.raises(NoRoomForBody):
                await receive()
        for _ in range(2 * LARGE_TOGETHER_BYTES // LARGE_BYTES):
            receive = under_way.enter_context(_sent(LARGE_BYTES, declared=declared, room=room))
            await receive()
            await receive()
    with _sent(BATCH_BYTES_MAX, declared=declared, room=room) as receive:
        await receive()


async def test_given_large_bodies_whose_requests_end_badly_then_their_room_is_given_back() -> None:
    room = Room(BATCH_BYTES_MAX)

    async def ends(how: BaseException) -> None:
        with _sent(BATCH_BYTES_MAX, declared=False, room=room) as receive:
            await receive()
            await receive()
            raise how

    for how in (RuntimeError("a bug"), BodyTooLarge(1), asyncio.CancelledError()):
        with pytest.raises(type(how)):
            await ends(how)
    with _sent(BATCH_BYTES_MAX, declared=True, room=room) as receive:
        await receive()


async def _nothing_more() -> Message:
    """What comes of a client that has gone without a word: its network was cut."""
    await asyncio.Event().wait()
    raise AssertionError("nothing comes")


async def test_given_clients_that_go_amid_large_bodies_then_their_room_is_given_back() -> None:
    """Nobody ever hears of it: three of them kept all the room, and each batch of others was 503 until the process was started anew."""
    room = Room(LARGE_TOGETHER_BYTES)
    first = {"type": "http.request", "body": b"x" * LARGE_BYTES, "more_body": True}

    async def gone(number: int) -> None:
        come: list[Message] = [first]

        async def receive() -> Message:
            return come.pop() if come else await _nothing_more()

        headers = [(b"content-length", str(BATCH_BYTES_MAX).encode())]
        scope = {"type": "http", "path": "/api/v1/messages", "headers": headers}
        with bounded(scope, receive, room, pause_s=0.05) as counted:
            await counted()
            await counted()

    many = LARGE_TOGETHER_BYTES // BATCH_BYTES_MAX
    ends = await asyncio.gather(*map(gone, range(many)), return_exceptions=True)
    assert list(map(type, ends)) == [BodyUnfinished] * many
    room.take(LARGE_TOGETHER_BYTES)


async def test_given_bodies_that_drip_then_they_end_and_give_their_room_back() -> None:
    """A byte in each pause kept a large body's room for good; three such clients refused everybody else's batches."""
    room = Room()

    async def receive() -> Message:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": True}

    headers = [(b"content-length", str(BATCH_BYTES_MAX).encode())]
    scope = {"type": "http", "path": "/api/v1/messages", "headers": headers}

    async def taken_in() -> None:
        with bounded(scope, receive, room, pause_s=5, body_s=0.1) as counted:
            for _ in range(1_000):
                await counted()

    with pytest.raises(BodyUnfinished):
        await taken_in()
    room.take(LARGE_TOGETHER_BYTES)


async def test_given_a_body_that_is_complete_then_its_client_may_be_waited_for_as_long_as_it_stays() -> None:
    come: list[Message] = [{"type": "http.request", "body": b"{}", "more_body": False}]

    async def receive() -> Message:
        if come:
            return come.pop()
        await asyncio.sleep(0.1)
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path": "/api/v1/messages", "headers": []}
    with bounded(scope, receive, Room(), pause_s=0.01) as counted:
        assert [(await counted())["type"] for _ in range(2)] == ["http.request", "http.disconnect"]


@pytest.mark.parametrize("path", ["/raw", "/parsed"])
async def test_given_a_body_that_stops_coming_then_408_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(middleware, "bounded", partial(bounded, pause_s=0.05))
    frame = RequestFrame(_two_readers(), Metrics(API_METRICS), lambda event, **fields: None, Hosts("127.0.0.1"), Room())
    headers = [(b"host", b"127.0.0.1:8080"), (b"content-type", b"application/json"), (b"content-length", b"100")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", "scheme": "http"}
    answered: list[Message] = []

    async def send(message: Message) -> None:
        answered.append(message)

    await frame({**scope, "server": ("127.0.0.1", 8080)}, _nothing_more, send)
    assert answered[0]["status"] == 408
    document = json.loads(answered[1]["body"])
    assert (document["type"], document["status"]) == ("urn:tidegate:problem:body-unfinished", 408)
    assert "repeat the request" in document["detail"]


def _two_readers() -> FastAPI:
    """An application that reads bodies in both ways that the API's routes do."""
    app = FastAPI()
    install(app)

    @app.post("/raw")
    async def raw(request: Request) -> int:
        return len(await read_json(request))

    @app.post("/parsed")
    async def parsed(document: list[str]) -> int:
        return len(document)

    return app


def test_given_no_room_for_a_large_body_then_503_and_when_to_repeat_it() -> None:
    room = Room(BODY_BYTES_MAX)
    hosts = Hosts("127.0.0.1")
    frame = RequestFrame(_two_readers(), Metrics(API_METRICS), lambda event, **fields: None, hosts, room)
    http = TestClient(frame, "http://127.0.0.1:8080")
    large = ["x" * LARGE_BYTES]
    for path in ("/raw", "/parsed") * 5:  # More than the room has place for at once.
        assert http.post(path, json=large).status_code == 200
    room.take(BODY_BYTES_MAX - LARGE_BYTES)
    for path in ("/raw", "/parsed"):
        answer = http.post(path, json=large)
        assert (answer.status_code, answer.headers["Retry-After"], answer.headers["content-type"]) == (
            503,
            "2",
            PROBLEM,
        )
        assert "smaller batches" in answer.json()["detail"]
        assert http.post(path, json=["x"]).status_code == 200


async def _status(hosts: Hosts, method: str, headers: dict[str, str]) -> int:
    """Returns what a request is answered that an application would answer 200."""
    frame = RequestFrame(PlainTextResponse("ok"), Metrics(API_METRICS), lambda event, **fields: None, hosts, Room())
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/x", "headers": raw, "server": ("h", 1), "scheme": "http"}
    answered: list[Message] = []

    async def empty() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        answered.append(message)

    await frame({**scope, "query_string": b""}, empty, send)
    status: int = answered[0]["status"]
    return status


@pytest.mark.parametrize(
    "path", ["/livez", "/metrics", "/api/v1/schedules", PUT_SCHEDULE, "/openapi.json", "/api/v1/nothing"]
)
def test_given_head_then_it_is_answered_as_get_without_the_body(process: Process, path: str) -> None:
    """It was 405: clients and proxies ask so whether something is there, and by its ETag whether it has changed."""
    put_schedule(process)
    head, get = process.http.head(path), process.http.get(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    told = [{name: value for name, value in answer.headers.items() if name != "x-request-id"} for answer in (head, get)]
    assert told[0].keys() == told[1].keys()
    assert head.headers.get("ETag") == get.headers.get("ETag")


def test_given_head_of_what_only_takes_writes_then_405(process: Process) -> None:
    assert process.http.head(f"{PUT_SCHEDULE}/suspend").status_code == 405
