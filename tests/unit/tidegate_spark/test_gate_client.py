from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark.gate_client import (
    BACKOFF_BASE_S,
    BACKOFF_CAP_S,
    Answer,
    Deadline,
    GateClient,
    GateMisconfigured,
    GateUnreachable,
    gate_address,
)
from tidegate_spark.run_identity import RunIdentity


class Gate(Protocol):
    url: str

    def answers(self, action: str, *answers: tuple[int, str]) -> None: ...
    def first_answers(self, action: str, *answers: tuple[int, str]) -> None: ...
    def refuses(self, action: str, status: int, **words: str) -> None: ...
    def of(self, action: str) -> list[object]: ...


class Clock:
    """Time that passes only while somebody pauses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def a_client(url: str, clock: Clock, jitter: float = 1.0) -> GateClient:
    return GateClient(RunIdentity("r", 1, url, "t"), pause=clock.pause, jitter=lambda: jitter)


def test_given_server_errors_then_pauses_double_up_to_the_cap_and_end_at_the_deadline(gate: Gate) -> None:
    gate.answers("start", (503, ""))
    clock = Clock()
    with pytest.raises(GateUnreachable, match="HTTP 503"):
        a_client(gate.url, clock).post("start", {}, Deadline(30, clock))
    assert clock.pauses[0] == BACKOFF_BASE_S
    assert all(later == min(2 * earlier, BACKOFF_CAP_S) for earlier, later in pairwise(clock.pauses[:-1]))
    assert max(clock.pauses) == BACKOFF_CAP_S
    assert clock.now == pytest.approx(30)
    assert len(gate.of("start")) == len(clock.pauses) + 1


def test_given_full_jitter_then_the_pause_is_a_fraction_of_the_back_off(gate: Gate) -> None:
    gate.first_answers("start", (503, ""), (503, ""))
    clock = Clock()
    assert a_client(gate.url, clock, jitter=0.25).post("start", {}, Deadline(30, clock)).ok
    assert clock.pauses == [BACKOFF_BASE_S / 4, BACKOFF_BASE_S / 2]


def test_given_no_time_at_all_then_one_request_is_made(gate: Gate) -> None:
    gate.answers("start", (500, ""))
    clock = Clock()
    with pytest.raises(GateUnreachable):
        a_client(gate.url, clock).post("start", {}, Deadline(0, clock))
    assert len(gate.of("start")) == 1


def test_given_a_base_path_then_it_is_kept(gate: Gate) -> None:
    clock = Clock()
    client = GateClient(RunIdentity("run/1", 1, f"{gate.url}/tide/", "t"), pause=clock.pause)
    assert client.post("start", {}, Deadline(5, clock)).ok
    assert [request.path for request in gate.of("start")] == [  # type: ignore[attr-defined] # of the stand-in
        "/tide/api/v1/runs/run%2F1/start"
    ]


def test_given_a_proxy_in_the_environment_then_the_token_does_not_go_there(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    clock = Clock()
    assert a_client(gate.url, clock).post("start", {}, Deadline(0, clock)).ok


@pytest.mark.parametrize(
    "url",
    [
        *("", "127.0.0.1:8080", "ftp://host/", "http://", "http://host:port/", "http://[::1"),
        *("http://gate..svc/", f"http://{'a' * 64}.svc/", "http://host/\N{LATIN SMALL LETTER A WITH DIAERESIS}"),
    ],
)
def test_given_an_unusable_url_then_no_retry_is_made(url: str) -> None:
    """The last ones ended the wrapper with a traceback and 1, which says "try again", and not with 78 and what is wrong."""
    with pytest.raises(GateMisconfigured, match="TIDEGATE_GATE_URL"):
        gate_address(url)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"reason": "r", "detail": "d", "title": "t"}, "d"),
        ({"reason": "r", "title": "t"}, "r"),
        ({"title": "t"}, "t"),
        ({"detail": ["no", "text"]}, "HTTP 404"),
        ({}, "HTTP 404"),
    ],
)
def test_given_a_refusal_then_its_most_telling_words_are_shown(document: dict[str, object], words: str) -> None:
    assert Answer(404, document).problem == words


@given(
    waits=st.lists(st.floats(min_value=0, max_value=100), max_size=10),
    seconds=st.floats(min_value=0, max_value=1000),
    shortened=st.floats(min_value=0, max_value=1000),
)
def test_given_a_deadline_is_shortened_then_it_never_moves_back(
    waits: list[float], seconds: float, shortened: float
) -> None:
    clock = Clock()
    deadline = Deadline(seconds, clock)
    for wait in waits:
        clock.pause(wait)
        before = deadline.remaining()
        deadline.shorten(shortened)
        assert 0 <= deadline.remaining() <= min(before, shortened) + 1e-6


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((200, "<html>maintenance</html>"), id="page"),
        pytest.param((200, "{}"), id="document without a run"),
        pytest.param((200, '{"run_id": "s"}'), id="another run"),
        pytest.param((200, "[]"), id="no object"),
        pytest.param((204, ""), id="no content"),
        pytest.param((302, ""), id="redirect"),
        pytest.param((404, "<html>"), id="page of a path that is not there"),
        pytest.param((404, '{"detail": "Not Found"}'), id="refusal without a type"),
        pytest.param((403, '{"type": "about:blank"}'), id="problem of another kind"),
        pytest.param((409, '{"type": 7}'), id="type that is no text"),
    ],
)
def test_given_somebody_elses_answer_then_the_gate_is_asked_again(gate: Gate, answer: tuple[int, str]) -> None:
    """A proxy's word is not the gate's: neither its success nor its refusal."""
    gate.first_answers("start", answer)
    clock = Clock()
    assert a_client(gate.url, clock).post("start", {}, Deadline(5, clock)) == Answer(200, {"run_id": "r"})


def test_given_only_somebody_elses_answers_then_error_says_so(gate: Gate) -> None:
    gate.answers("start", (404, "<html>"))
    clock = Clock()
    with pytest.raises(GateUnreachable, match="HTTP 404 that is not of tidegate's API"):
        a_client(gate.url, clock).post("start", {}, Deadline(1, clock))


def test_given_a_refusal_of_the_api_then_it_is_final(gate: Gate) -> None:
    gate.refuses("start", 404, detail="there is no such run")
    clock = Clock()
    answer = a_client(gate.url, clock).post("start", {}, Deadline(5, clock))
    assert (answer.status, answer.problem) == (404, "there is no such run")
    assert len(gate.of("start")) == 1


@pytest.fixture(autouse=True)
def no_proxy_exceptions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the machine says about proxies must not decide these tests."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return iter((None,))
