"""From a record on the requests topic to a request, or to a refusal that its sender can be told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.formats.parsing import parse_events, parse_request, parse_schedule
from tidegate_core.language.requests.requests import (
    MAX_PAYLOAD_BYTES,
    MAX_RECORD_BYTES,
    PAYLOAD_FIELDS,
    ControlSuspend,
    MessageSend,
    Request,
    ScheduleApply,
    ScheduleResume,
    ScheduleSuspend,
    check_delivery,
)
from tidegate_core.language.values.problems import InvalidInput, RefusedRecord


def record(base: Any = MessageSend.EXAMPLE, *, without: tuple[str, ...] = (), **fields: Any) -> bytes:
    kept = {name: value for name, value in base.items() if name not in without}
    return json.dumps({**kept, **fields}).encode()


def refusal(value: bytes | None, headers: Any = None) -> RefusedRecord:
    with pytest.raises(RefusedRecord) as caught:
        parse_request(value, headers)
    return caught.value


def fields_of(refused: RefusedRecord) -> list[str]:
    return [problem.field for problem in refused.problems]


def message(**fields: Any) -> MessageSend:
    request = parse_request(record(**fields))
    assert isinstance(request, MessageSend)
    return request


CE = [("ce_specversion", b"1.0"), ("ce_id", b"id-1"), ("ce_type", b"tidegate.message.send"), ("ce_source", b"/shop")]


def test_given_cloudevents_headers_then_they_are_id_and_type() -> None:
    value = record(without=("id", "type"))

    for headers in (CE, dict(CE), [(name.upper(), text.decode()) for name, text in CE]):
        request = parse_request(value, headers)
        assert (request.id, request.type) == ("id-1", "message.send")


def test_given_envelope_that_contradicts_the_data_then_it_is_refused_and_answerable() -> None:
    refused = refusal(record(), CE)

    assert fields_of(refused) == ["id"]
    assert refused.request_id == "id-1"


def test_given_somebody_elses_cloudevent_then_it_is_refused() -> None:
    refused = refusal(b"{}", [("ce_id", b"x"), ("ce_type", b"com.example.order")])

    assert "begin with tidegate." in refused.problems[0].hint
    assert refused.request_id == "x"


def test_given_an_id_that_is_not_utf8_then_it_is_nobodys_and_the_one_in_the_record_is_told() -> None:
    headers = [("ce_id", b"\xff"), ("ce_type", b"tidegate.message.send")]
    assert refusal(b"{}", headers).request_id is None
    assert refusal(b'{"id": "mine"}', headers).request_id == "mine"


@pytest.mark.parametrize(
    "value", [None, b"", b"{", b"\xff\xfe", b"[]", b'"text"', b"NaN", b"[" * 10_000, b'{"a": "\\ud800"}', b"1" * 5000]
)
def test_given_what_is_no_json_object_then_it_is_unparsable_and_nobody_can_be_answered(value: bytes | None) -> None:
    refused = refusal(value)

    assert refused.error_class == "unparsable"
    assert refused.request_id is None


def test_given_more_levels_than_the_parser_takes_then_the_depth_is_told_and_not_that_it_is_no_json() -> None:
    with pytest.raises(RefusedRecord, match=r"^is nested too deeply$"):
        parse_request(b'{"type": "schedule.apply", "spec": ' + b"[" * 300 + b"]" * 300 + b"}")


def test_given_unparsable_value_with_an_envelope_then_its_sender_can_be_answered() -> None:
    refused = refusal(b"{", CE)

    assert (refused.request_id, refused.type) == ("id-1", "message.send")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ('"topic": "b", ', "topic"),
        ('"headers": {"k": "1", "k": "2"}, ', "k"),
        ('"payload": [{"a": {"x": 1, "\\u0078": 1}}], ', "x"),
    ],
)
def test_given_a_field_twice_then_the_request_is_refused_by_its_name_and_answerable(change: str, name: str) -> None:
    """Parsers keep the last one, so that nobody could say which one was meant."""
    text = record(without=("headers", "payload")).decode()
    refused = refusal(("{" + change + text[1:]).encode())

    (problem,) = refused.problems
    assert problem.problem == f'has the field "{name}" twice in one object'
    assert (refused.error_class, refused.request_id) == ("invalid", MessageSend.EXAMPLE["id"])
    assert (refused.type, refused.namespace) == ("message.send", MessageSend.EXAMPLE["namespace"])


def test_given_an_id_or_a_namespace_twice_then_nobody_is_answered_under_one_of_them() -> None:
    text = record().decode()[1:]
    assert refusal(('{"id": "other", ' + text).encode()).request_id is None
    assert refusal(('{"namespace": "other", ' + text).encode()).namespace is None
    enveloped = refusal(('{"id": "other", ' + text).encode(), [("ce_id", b"id-1")])
    assert enveloped.request_id == "id-1"


def test_given_an_event_with_a_field_twice_then_it_is_refused() -> None:
    event = b'{"type": "custom.a", "namespace": "n", "data": {"x": 1, "x": 2}}'
    with pytest.raises(RefusedRecord, match='has the field "x" twice'):
        parse_events(event)


def test_given_record_above_a_mebibyte_then_it_is_too_large_and_answerable() -> None:
    refused = refusal(record(payload_text="x" * (2 * MAX_RECORD_BYTES), without=("payload",)))

    assert (refused.error_class, refused.http_status) == ("too_large", 413)
    assert (refused.request_id, refused.namespace, refused.key) == (MessageSend.EXAMPLE["id"], "orders", "reminder-17")
    assert refusal(b"x" * (MAX_RECORD_BYTES + 1)).request_id is None


@pytest.mark.parametrize("field", ["payload", "payload_text"])
def test_given_payload_above_its_limit_then_it_is_too_large_with_a_way_out(field: str) -> None:
    refused = refusal(record(without=("payload",), **{field: "x" * (MAX_PAYLOAD_BYTES + 1)}))

    assert refused.error_class == "too_large"
    assert fields_of(refused) == [field]
    assert "pointer" in refused.problems[0].hint
    assert message(payload="x" * (MAX_PAYLOAD_BYTES - 2)).payload_bytes == b'"' + b"x" * (MAX_PAYLOAD_BYTES - 2) + b'"'


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("schedule.aply", '"schedule.aply" is unknown'),
        ("run.rerun", "planned for 0.3"),
        ("object.apply", "planned for 0.5"),
        ("control.freeze", "planned for 0.5"),
        (5, "not a text"),
        (None, "is missing"),
    ],
)
def test_given_other_type_then_it_is_refused_by_name(kind: Any, part: str) -> None:
    refused = refusal(json.dumps({"id": "a", "type": kind}).encode())

    assert fields_of(refused) == ["type"]
    assert part in refused.problems[0].problem
    assert refused.request_id == "a"


@pytest.mark.parametrize("name", ["id", "namespace", "name", "key"])
def test_given_names_that_cannot_be_stored_then_the_refusal_leaves_them_out(name: str) -> None:
    refused = refusal(record({**MessageSend.EXAMPLE, name: "x" * 129}))

    found = {"id": refused.request_id, "namespace": refused.namespace, "name": refused.name, "key": refused.key}
    assert found[name] is None


@pytest.mark.parametrize(
    ("change", "without", "fields"),
    [
        ({"after": "1h"}, (), ["deliver_at"]),
        ({}, ("deliver_at",), ["deliver_at"]),
        ({"payload_text": "x"}, (), ["payload"]),
        ({}, ("payload",), ["payload"]),
        ({"payload_base64": "*"}, ("payload",), ["payload_base64"]),
        ({"payload_base64": "é"}, ("payload",), ["payload_base64"]),
        ({"deliver_at": 1_795_212_000_000}, (), ["deliver_at"]),
        ({"deliver_at": "2026-11-20T22:00:00"}, (), ["deliver_at"]),
        ({"topic": "a b"}, (), ["topic"]),
        ({"topc": "a"}, (), ["topc"]),
        ({"headers": {"Tidegate-Id": "x"}}, (), ["headers"]),
        ({"headers": {"k": 5}}, (), ["headers.k"]),
        ({"headers": {"k": "x" * 20_000}}, (), ["headers"]),
        ({"headers": {str(n): "" for n in range(65)}}, (), ["headers"]),
        ({"headers": {str(n): 5 for n in range(10_000)}}, (), ["headers"]),
        ({f"unknown{n}": 1 for n in range(10_000)}, (), [""]),
        ({"expire_after": "0s"}, (), ["expire_after"]),
        ({"receipt": "yes"}, (), ["receipt"]),
        ({"key": "a\nb"}, (), ["key"]),
        ({"namespace": "Orders", "topic": ""}, (), ["topic", "namespace"]),
        ({"cron": "@daily"}, (), ["cron"]),
    ],
)
def test_given_faulty_message_then_its_fields_are_told(
    change: dict[str, Any], without: tuple[str, ...], fields: list[str]
) -> None:
    assert fields_of(refusal(record(without=without, **change))) == fields


def test_given_a_name_of_any_length_then_the_answer_stays_far_below_what_the_receipts_topic_takes() -> None:
    for base in (MessageSend.EXAMPLE, {"clientId": "orders", "scheduleKey": "k"}):
        refused = refusal(record({**base, **{f"{n:02d}{'x' * 20_000}": 1 for n in range(40)}}))

        assert sum(len(str(problem)) for problem in refused.problems) < 10_000


@pytest.mark.parametrize(
    ("payload", "delivered"),
    [
        ({"payload": {"order": 17, "name": "ä"}}, b'{"order":17,"name":"\xc3\xa4"}'),
        ({"payload": None}, b"null"),
        ({"payload": 1.5}, b"1.5"),
        ({"payload_text": "plain ä"}, b"plain \xc3\xa4"),
        ({"payload_text": ""}, b""),
        ({"payload_base64": "AP8="}, b"\x00\xff"),
    ],
)
def test_given_payload_then_its_bytes_are_delivered(payload: dict[str, Any], delivered: bytes) -> None:
    request = parse_request(record(without=("payload",), **payload))

    assert isinstance(request, MessageSend)
    assert request.payload_bytes == delivered
    assert parse_request(request.to_json()) == request


def test_given_number_beyond_json_then_it_is_refused() -> None:
    assert fields_of(refusal(record().replace(b'{"order": 17}', b"1e400"))) == ["payload"]


def test_given_after_then_it_counts_from_the_append_time() -> None:
    request = parse_request(record(without=("deliver_at",), after="90s"))

    assert isinstance(request, MessageSend)
    assert request.due(1_000) == 91_000
    assert message().due(1_000) == 1_795_212_000_000


def test_given_time_beyond_ten_years_then_it_is_refused_and_the_past_is_not() -> None:
    assert check_delivery(message(deliver_at="1999-01-01T00:00:00Z"), appended_at=1_795_212_000_000) == ()
    (problem,) = check_delivery(message(deliver_at="2040-01-01T00:00:00Z"), appended_at=1_795_212_000_000)
    assert problem.field == "deliver_at"


def test_given_faulty_spec_then_its_paths_are_the_schedules_own_and_the_requests_faults_are_told_too() -> None:
    spec = {**ScheduleApply.EXAMPLE["spec"], "trigger": {"type": "cronn"}}
    refused = refusal(record(ScheduleApply.EXAMPLE, spec=spec, expected_version=-1, on_update="perhaps"))

    assert fields_of(refused) == ["trigger.type", "expected_version", "on_update"]
    assert (refused.request_id, refused.namespace, refused.name) == (ScheduleApply.EXAMPLE["id"], "flights", "join-day")


def test_given_spec_without_names_then_the_requests_are_taken_and_the_other_way_round() -> None:
    spec = {name: value for name, value in ScheduleApply.EXAMPLE["spec"].items() if name not in {"namespace", "name"}}
    inner_only = parse_request(record(ScheduleApply.EXAMPLE, without=("namespace", "name")))
    outer_only = parse_request(record(ScheduleApply.EXAMPLE, spec=spec))

    assert isinstance(inner_only, ScheduleApply)
    assert inner_only == outer_only
    assert (inner_only.namespace, inner_only.spec.name) == ("flights", "join-day")


def test_given_names_that_differ_then_apply_is_refused() -> None:
    assert "namespace" in fields_of(refusal(record(ScheduleApply.EXAMPLE, namespace="other")))


@pytest.mark.parametrize(("spec", "fields"), [("text", ["spec"]), (None, ["spec"])])
def test_given_spec_that_is_no_mapping_then_it_is_told(spec: Any, fields: list[str]) -> None:
    assert fields_of(refusal(record(ScheduleApply.EXAMPLE, spec=spec))) == fields
    assert fields_of(refusal(record(ScheduleApply.EXAMPLE, without=("spec",)))) == ["spec"]


@pytest.mark.parametrize("mode", [None, "drop", "drain", "hold", "freeze"])
def test_given_suspend_mode_then_it_is_taken_and_another_word_is_refused(mode: str | None) -> None:
    wanted: dict[str, Any] = {} if mode is None else {"mode": mode}
    suspend = parse_request(record(ScheduleSuspend.EXAMPLE, until="2027-01-01T00:00:00Z", **wanted))

    assert isinstance(suspend, ScheduleSuspend)
    assert (suspend.mode, suspend.until) == (mode, 1_798_761_600_000)
    assert parse_request(suspend.to_json()) == suspend
    assert fields_of(refusal(record(ScheduleSuspend.EXAMPLE, mode="pause"))) == ["mode"]


@pytest.mark.parametrize("backlog", ["all", "last", "coalesce", "none"])
def test_given_backlog_then_a_resume_takes_it_and_another_word_is_refused(backlog: str) -> None:
    resume = parse_request(record(ScheduleResume.EXAMPLE, backlog=backlog))

    assert isinstance(resume, ScheduleResume)
    assert resume.backlog == backlog
    assert fields_of(refusal(record(ScheduleResume.EXAMPLE, backlog="some"))) == ["backlog"]


@pytest.mark.parametrize("mode", ["drain", "hold", "freeze"])
def test_given_wide_suspend_mode_of_a_later_version_then_it_is_refused_with_it(mode: str) -> None:
    refused = refusal(record(ControlSuspend.EXAMPLE, mode=mode))

    assert fields_of(refused) == ["mode"]
    assert "planned for 0.3" in refused.problems[0].problem


@pytest.mark.parametrize("change", [{"key": "k", "message_id": "m"}, {}])
def test_given_cancel_of_none_or_two_messages_then_it_is_refused(change: dict[str, str]) -> None:
    value = json.dumps({"id": "a", "type": "message.cancel", "namespace": "orders", **change}).encode()

    assert fields_of(refusal(value)) == ["key"]


@given(st.binary(max_size=200))
def test_given_any_bytes_then_only_refusals_come_out(value: bytes) -> None:
    for parse in (parse_request, parse_events):
        with pytest.raises(RefusedRecord):
            parse(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(list(MessageSend.EXAMPLE)), json_values)
def test_given_any_json_in_any_field_then_it_is_a_request_or_a_refusal(field: str, value: Any) -> None:
    try:
        request: Request = parse_request(record(**{field: value}))
    except RefusedRecord as refused:
        assert refused.problems  # noqa: PT017 - both outcomes are right
    else:
        assert parse_request(request.to_json()) == request


@given(st.sampled_from(list(ScheduleApply.EXAMPLE["spec"])), json_values)
def test_given_any_json_in_any_field_of_a_spec_then_it_is_a_request_or_a_refusal(field: str, value: Any) -> None:
    try:
        parse_request(record(ScheduleApply.EXAMPLE, spec={**ScheduleApply.EXAMPLE["spec"], field: value}))
    except RefusedRecord as refused:
        assert refused.problems  # noqa: PT017 - both outcomes are right


def test_given_a_request_then_it_is_written_without_blanks_and_without_what_is_kept_elsewhere() -> None:
    """It lies in an item of the store until its owner has applied it: blanks would count."""
    document = {
        "type": "message.send", "namespace": "orders", "topic": "out", "after": "1s", "payload": [1, {"a": "ü"}]
    }  # fmt: skip
    request = parse_request(json.dumps(document).encode())
    assert b'"payload":[1,{"a":"\xc3\xbc"}]' in request.to_json()
    assert b" " not in request.to_json()
    assert json.loads(request.to_json(without=PAYLOAD_FIELDS)).keys() == document.keys() - {"payload"}


def test_given_a_header_whose_name_has_a_nul_then_the_message_is_refused() -> None:
    """Kafka's client ends a name there: the message would come with a header of another name."""
    problems = refusal(json.dumps({**MessageSend.EXAMPLE, "headers": {"a\x00b": "v"}}).encode()).problems
    assert [problem.field for problem in problems] == ["headers"]
    target = {"type": "message", "topic": "t", "payload": 1, "headers": {"a\x00b": "v"}}
    spec = {"namespace": "n", "name": "a", "target": target, "trigger": {"type": "every", "period": "1h"}}
    with pytest.raises(InvalidInput) as refused:
        parse_schedule(spec)
    assert [problem.field for problem in refused.value.problems] == ["target.headers"]


MARK = b"\xef\xbb\xbf"


def test_given_a_byte_order_mark_before_a_record_then_it_is_skipped() -> None:
    """As .NET and PowerShell write JSON; it was "not JSON"."""
    assert parse_request(MARK + record()) == parse_request(record())
    event = b'{"type": "custom.x", "namespace": "n"}'
    assert parse_events(MARK + event) == parse_events(event)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param(
            b'{"id": "r-1", "type": "message.send", "namespace": "orders", "after": 1h}', "not JSON", id="no JSON"
        ),
        pytest.param(
            b'{"id": "r-1", "type": "message.send", "namespace": "orders",}', "not JSON", id="a comma too many"
        ),
        pytest.param(
            b'{"id": "r-1",\n"type": "message.send",\n"namespace": "orders",\nx: 1}', "not JSON", id="in line 4"
        ),
        pytest.param(b'{"id": "r-1", "type": "message.send", "namespace": "orders"', "not JSON", id="cut off"),
        pytest.param(b'{"id": "r-1", "type": "message.send", "namespace": "orders", "x": NaN}', "not JSON", id="NaN"),
        pytest.param(
            b'{"id": "r-1", "type": "message.send", "namespace": "orders", "x": "\xff"}', "not JSON", id="Latin 1"
        ),
        pytest.param(
            b'{"id": "r-1", "type": "message.send", "namespace": "orders", "payload": [' + b"[]," * 140_000 + b"1]}",
            "lists and objects",
            id="too many lists",
        ),
    ],
)
def test_given_a_record_that_is_not_read_whose_id_comes_before_the_fault_then_its_sender_is_told(
    value: bytes, problem: str
) -> None:
    """Whoever waited for a receipt waited for ever."""
    refused = refusal(value)
    assert (refused.request_id, refused.type, refused.namespace) == ("r-1", "message.send", "orders")
    assert problem in str(refused)


def test_given_an_id_that_is_a_number_then_the_refusal_is_answered_under_it() -> None:
    refused = refusal(record(id=17))
    assert refused.request_id == "17"
    assert fields_of(refused) == ["id"]


def test_given_a_number_as_id_that_is_cut_off_then_nobody_is_answered_under_a_part_of_it() -> None:
    assert refusal(b'{"type": "message.send", "id": 17').request_id is None


def test_given_an_envelope_of_another_type_then_the_id_of_its_data_is_answered() -> None:
    assert refusal(record(id="r-9"), {"ce_type": "com.acme.order"}).request_id == "r-9"
