"""The client: what it asks, what it returns, and what each refusal becomes."""

from __future__ import annotations

import json
import pickle
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from tidegate_client import (
    AnswerPending,
    ApiFailed,
    ApiUnavailable,
    ApiUnreachable,
    Client,
    Conflict,
    InvalidRequest,
    NotFound,
    TidegateError,
)
from tidegate_client.views import FieldProblem, ReceiptView

Handler = Callable[[httpx2.Request], httpx2.Response]
RECEIPT = {"request_id": "r-1", "status": "accepted", "at": "2026-11-20T22:00:00Z", "a_later_field": 1}
RUN = "0001-mfrggzdfmztwq2lkn5wg63tqoe"
PENDING = {**RECEIPT, "status": "pending"}
WORD = "word-of-ops"


def client_of(handler: Handler) -> Client:
    return Client("http://api:1", transport=httpx2.MockTransport(handler))


def answering(status: int, body: Any, **headers: str) -> Client:
    return client_of(lambda _: httpx2.Response(status, json=body, headers=headers))


def test_given_pages_then_a_list_goes_through_all_of_them() -> None:
    """CD-018."""

    def handler(request: httpx2.Request) -> httpx2.Response:
        token = request.url.params.get("page_token", "")
        number = int(token or 0)
        item = {"namespace": "a", "name": f"s-{number}", "status": "active", "version": 1}
        return httpx2.Response(200, json={"items": [item], "next_page_token": str(number + 1) if number < 3 else ""})

    with client_of(handler) as client:
        assert [view.name for view in client.schedules("a")] == ["s-0", "s-1", "s-2", "s-3"]


def test_given_write_then_it_carries_an_id_and_names_are_quoted() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=RECEIPT)

    with client_of(handler) as client:
        client.apply_schedule({"namespace": "a", "name": "b", "kind": "schedule"}, expected_version=0)
        client.cancel_message("orders", key="a/b c", request_id="mine")
        receipt = client.suspend_schedule("a", "b", reason="repair", actor=None)
    apply, cancel, suspend = seen
    assert (apply.method, apply.url.path, apply.url.params["expected_version"]) == ("PUT", "/api/v1/schedules/a/b", "0")
    assert apply.headers["Idempotency-Key"]
    assert (cancel.headers["Idempotency-Key"], cancel.url.params["key"]) == ("mine", "a/b c")
    assert json.loads(suspend.content) == {"reason": "repair"}
    assert receipt.at == datetime(2026, 11, 20, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequest),
        (413, InvalidRequest),
        (422, InvalidRequest),
        (404, NotFound),
        (409, Conflict),
        (412, Conflict),
        (503, ApiUnavailable),
        (500, ApiFailed),
    ],
)
def test_given_refusal_then_its_class_states_the_next_step(status: int, kind: type[TidegateError]) -> None:
    problem = {
        "type": "urn:tidegate:problem:test",
        "title": "t",
        "status": status,
        "detail": "what happened",
        "errors": [{"field": "f", "problem": "is wrong"}],
    }
    with (
        answering(status, problem, **{"Retry-After": "2"}) as client,
        pytest.raises(kind, match="what happened") as found,
    ):
        client.run(RUN)
    if isinstance(found.value, InvalidRequest):
        assert found.value.problems == (FieldProblem(field="f", problem="is wrong"),)
    if isinstance(found.value, ApiUnavailable):
        assert found.value.retry_after_s == 2


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (httpx2.Response(502, text="<html>"), ApiUnavailable),
        (httpx2.Response(404, text="default backend - 404"), ApiUnavailable),
        (httpx2.Response(404, json={"title": "Not Found", "status": 404}), ApiUnavailable),
        (httpx2.Response(401, text="Authorization Required"), ApiFailed),
        (httpx2.Response(409, json={"error": "not here"}), ApiFailed),
    ],
)
def test_given_a_refusal_that_is_not_the_api_s_then_nothing_is_known_of_what_was_asked_for(
    answer: httpx2.Response, kind: type[TidegateError]
) -> None:
    """While an API is replaced, what stands before it answers 404: that is no run that does not exist."""
    with client_of(lambda _: answer) as client, pytest.raises(kind, match="and not by a tidegate API itself") as found:
        client.run(RUN)
    assert str(answer.status_code) in str(found.value)
    assert found.value.remedy


@pytest.mark.parametrize("status", [200, 202])
@pytest.mark.parametrize("text", ["<html>", "{}", "[]", "null", '{"status": "ok"}', '{"items": 3}', '{"items": [{}]}'])
@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.run(RUN),
        lambda client: client.runs(),
        lambda client: list(client.schedules()),
        lambda client: client.nodes(),
        lambda client: client.apply_schedule({"namespace": "a", "name": "b"}),
        lambda client: client.apply_schedules([]),
        lambda client: client.send_event(type="custom.a", namespace="a"),
        lambda client: client.dead_letter_value("requests-0-0"),
    ],
)
def test_given_a_success_that_is_not_the_api_s_then_the_address_is_asked_about(
    call: Callable[[Client], object], text: str, status: int
) -> None:
    """Another service listens at the default port."""
    answer = httpx2.Response(status, text=text)
    with (
        client_of(lambda _: answer) as client,
        pytest.raises(ApiFailed, match="is this the address of a tidegate API"),
    ):
        call(client)


def test_given_pending_then_it_is_told_with_where_to_ask() -> None:
    with answering(202, PENDING, Location="/api/v1/requests/a/r-1") as client, pytest.raises(AnswerPending) as found:
        client.delete_schedule("a", "b")
    assert (found.value.location, found.value.receipt.status) == ("/api/v1/requests/a/r-1", "pending")
    with client_of(lambda request: httpx2.Response(200, json={**RECEIPT, "request_id": str(request.url)})) as client:
        assert client.receipt("/api/v1/requests/a/r-1?shard=2").request_id.endswith("/a/r-1?shard=2")
    page = {"items": [RECEIPT, PENDING]}
    with answering(202, page) as client, pytest.raises(AnswerPending) as found:
        client.send_messages([{}, {}])
    assert found.value.receipt.status == "pending"
    assert [each.status for each in found.value.receipts] == [RECEIPT["status"], "pending"]
    error = {"field": "", "problem": "the broker did not take request r-1", "hint": "send it again with the id r-1"}
    with (
        answering(202, {"items": [PENDING, {**PENDING, "errors": [error]}]}) as client,
        pytest.raises(AnswerPending, match="1 of 2 requests: the broker did not take request r-1") as found,
    ):
        client.send_messages([{}, {}])
    assert found.value.remedy == "send it again with the id r-1"


def test_given_nobody_answers_then_the_remedy_is_named() -> None:
    def refuse(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    def wait(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("late")

    with client_of(refuse) as client, pytest.raises(ApiUnreachable, match="tidegate dev"):
        client.run(RUN)
    with client_of(wait) as client, pytest.raises(ApiUnavailable):
        client.run(RUN)


def fails(error: Exception) -> Handler:
    def handler(_: httpx2.Request) -> httpx2.Response:
        raise error

    return handler


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(fails(httpx2.ReadTimeout("late")), id="no answer"),
        pytest.param(fails(httpx2.ReadError("reset")), id="the connection breaks"),
        pytest.param(fails(httpx2.RemoteProtocolError("closed")), id="the API ends"),
        pytest.param(lambda _: httpx2.Response(504, text="<html>"), id="a proxy's page"),
        pytest.param(lambda _: httpx2.Response(200, text="<html>"), id="a proxy's success"),
        pytest.param(lambda _: httpx2.Response(500, json={"title": "t", "status": 500}), id="an unforeseen error"),
    ],
)
@pytest.mark.parametrize("request_id", [None, "mine"])
def test_given_a_write_that_may_have_been_taken_then_error_names_the_id_under_which_a_repeat_acts_once(
    handler: Handler, request_id: str | None
) -> None:
    sent: list[httpx2.Request] = []

    def noted(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return handler(request)

    with client_of(noted) as client, pytest.raises((ApiUnavailable, ApiFailed)) as found:
        client.trigger_schedule("flights", "join-day", request_id=request_id)
    (request,) = sent
    assert request_id in (None, request.headers["Idempotency-Key"])
    assert f"under request id {request.headers['Idempotency-Key']} a repeat acts once" in str(found.value)


@pytest.mark.parametrize("event_id", [None, "mine"])
def test_given_an_event_that_may_have_been_taken_then_error_names_the_id_under_which_a_repeat_counts_once(
    event_id: str | None,
) -> None:
    sent: list[httpx2.Request] = []

    def late(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        raise httpx2.ReadTimeout("late")

    with client_of(late) as client, pytest.raises(ApiUnavailable) as found:
        client.send_event(type="custom.a", namespace="a", subject=None, id=event_id)
    document = json.loads(sent[0].content)
    assert set(document) == {"type", "namespace", "id"}
    assert event_id in (None, document["id"])
    assert f"under event id {document['id']} a repeat counts once" in str(found.value)


def test_given_null_then_it_is_a_value_of_payload_and_data_and_no_field_that_is_left_out() -> None:
    sent: list[Any] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        return httpx2.Response(200, json={**RECEIPT, "items": [{"id": "e", "type": "custom.a", "namespace": "a"}]})

    with client_of(handler) as client:
        client.send_message(namespace="a", topic="t", payload=None, key=None)
        client.send_event(id="e", type="custom.a", namespace="a", data=None, subject=None)
    assert sent == [
        {"namespace": "a", "topic": "t", "payload": None},
        {"id": "e", "type": "custom.a", "namespace": "a", "data": None},
    ]


def test_given_an_id_among_the_fields_then_it_is_the_requests() -> None:
    """As a request on the topic has it, and each message of a list: it was refused for another one, which the client had made."""
    sent: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, json=RECEIPT)

    with client_of(handler) as client:
        client.send_message(id="mine", namespace="a", topic="t", after="1s", payload=1)
        client.trigger_schedule("a", "b", id="mine")
        client.request({"id": "mine", "type": "run.cancel", "run_id": RUN})
    assert [request.headers["Idempotency-Key"] for request in sent] == ["mine"] * 3
    assert [json.loads(request.content)["id"] for request in sent] == ["mine"] * 3


def test_given_a_release_then_who_wants_it_and_why_go_along_under_the_given_id() -> None:
    sent: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, json=RECEIPT)

    with client_of(handler) as client:
        client.release_run(RUN, actor="ana", reason="its host was scrapped", request_id="it")
    (request,) = sent
    assert (request.method, request.url.path) == ("POST", f"/api/v1/runs/{RUN}/release")
    assert request.headers["Idempotency-Key"] == "it"
    assert json.loads(request.content) == {"actor": "ana", "reason": "its host was scrapped"}


def test_given_a_span_and_one_whose_shard_nobody_serves_then_the_others_are_resumed() -> None:
    views = [{"namespace": "a", "name": f"s-{number}", "status": "suspended", "version": 1} for number in range(3)]

    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json={"items": views})
        return httpx2.Response(202 if "s-0" in request.url.path else 200, json=RECEIPT)

    moment = datetime(2026, 11, 20, tzinfo=UTC)
    with client_of(handler) as client:
        outcomes = [outcome for _, outcome in client.resume_suspended(moment, moment)]
    assert [type(outcome).__name__ for outcome in outcomes] == ["AnswerPending", "ReceiptView", "ReceiptView"]


def test_given_a_write_that_nobody_can_have_taken_then_error_names_no_id() -> None:
    with client_of(fails(httpx2.ConnectError("refused"))) as client, pytest.raises(ApiUnreachable) as found:
        client.trigger_schedule("flights", "join-day", request_id="mine")
    assert "mine" not in str(found.value)


def test_given_https_to_a_server_that_speaks_http_then_the_scheme_is_named() -> None:
    """A real handshake: what the HTTP library wraps it in is its own affair."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1_024)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"https://127.0.0.1:{server.getsockname()[1]}"
        with Client(url) as client, pytest.raises(ApiUnreachable, match="write http://host:port"):
            client.run(RUN)
        thread.join()


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8080",
        "ftp://x",
        "http://",
        "http://host:abc",
        "http://[::1",
        "http://.:1",
        f"http://{'a' * 70}:1",
        f"http://ops:{WORD}@host:abc",
    ],
)
def test_given_address_that_is_none_then_it_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="address") as found:
        Client(url)
    assert WORD not in str(found.value)


def test_given_a_password_in_the_address_then_it_is_used_and_never_shown() -> None:
    sent: list[httpx2.Request] = []

    def html(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, text="<html>")

    for handler in (html, fails(httpx2.ConnectError("refused")), fails(httpx2.ReadTimeout("late"))):
        with (
            Client(f"http://ops:{WORD}@tide.example/", transport=httpx2.MockTransport(handler)) as client,
            pytest.raises(TidegateError, match=r"http://tide\.example") as found,
        ):
            client.run(RUN)
        assert WORD not in str(found.value)
        assert client.url == "http://tide.example"
    assert sent[0].headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda client: client.apply_schedule({"namespace": "bad", "name": "a/b"}), "name"),
        (lambda client: client.try_schedule({"namespace": "bad", "name": "../hello/count"}), "name"),
        (lambda client: client.delete_schedule("a/b", "c"), "namespace"),
        (lambda client: client.suspend_schedule("", "c"), "namespace"),
        (lambda client: client.schedule("a", "b\n"), "name"),
        (lambda client: client.run("../schedules/a/b"), "run_id"),
        (lambda client: client.run_logs(f"{RUN}/x"), "run_id"),
        (lambda client: client.cancel_run("%2e%2e"), "run_id"),
        (lambda client: client.release_run("%2e%2e"), "run_id"),
        (lambda client: client.job("a/b"), "job_id"),
        (lambda client: client.cancel_job("a/b"), "job_id"),
    ],
)
def test_given_name_that_would_make_another_path_then_the_rule_is_told_and_nothing_is_sent(
    call: Callable[[Client], object], field: str
) -> None:
    def never(_: httpx2.Request) -> httpx2.Response:
        raise AssertionError("sent")

    with client_of(never) as client, pytest.raises(InvalidRequest) as found:
        call(client)
    (problem,) = found.value.problems
    assert problem.field == field
    assert "is not a name: 1 to 128 of" in problem.problem or "is not a run id such as" in problem.problem


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda client: client.delete_schedule("a", "b", reason="caf\udce9"), id="not UTF-8"),
        pytest.param(lambda client: [*client.schedules("\ud800")], id="half of a character"),
        pytest.param(
            lambda client: client.delete_schedule("a", "b", reason="x" * 70_000), id="too long for an address"
        ),
        *(
            pytest.param(lambda client, each=each: client.trigger_schedule("a", "b", request_id=each), id=repr(each))
            for each in ("", " ", "a ", " a", "a\nb", "a\x00", "a\x7f", "\u00e4")
        ),
    ],
)
def test_given_what_no_exchange_can_carry_then_it_has_to_be_corrected_and_nothing_is_sent(
    call: Callable[[Client], Any],
) -> None:
    """An id's line break had the network blamed for it, and an empty one was another id for each repeat."""

    def handler(request: httpx2.Request) -> httpx2.Response:
        raise AssertionError(f"{request.url} was asked")

    with client_of(handler) as client, pytest.raises(InvalidRequest):
        call(client)


@pytest.mark.parametrize(
    "error",
    [
        ApiUnreachable("a", "b"),
        ApiUnavailable("a", "b", 3.0),
        InvalidRequest("a", [FieldProblem(field="b", problem="c")], "d"),
        Conflict("a", "b", ReceiptView.model_validate(RECEIPT)),
        AnswerPending("a", ReceiptView.model_validate(PENDING), "/b", "c", [ReceiptView.model_validate(RECEIPT)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_given_an_error_of_another_process_then_it_arrives_as_it_was(error: TidegateError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
