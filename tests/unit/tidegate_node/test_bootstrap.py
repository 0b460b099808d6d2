"""Settings that only a client's own library understands: a sentence and exit 78, not a traceback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, CredentialRetrievalError
from botocore.session import Session

from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.group.group_session import GroupProtocolRefused, GroupSession, GroupSessionUnavailable
from tidegate_node import bootstrap, main
from tidegate_node.commands import init_command
from tidegate_node.startup_checks import EXIT_CONFIGURATION, EXIT_TRY_LATER, Difference, NotYet, StartRefused
from tidegate_ports.store import PartlyRead

REFUSALS = [
    pytest.param({"dynamodb": {}}, "dynamodb.region is not set", id="no region"),
    pytest.param({"dynamodb": {"endpoint_url": "http://"}}, "dynamodb: ", id="no host"),
    pytest.param(
        {"dynamodb": {"region": "eu-central-1"}, "kafka": {"extra": {"security.protokoll": "ssl"}}},
        'kafka: No such configuration property: "security.protokoll"',
        id="no such property",
    ),
]
ALLOWED = {"TIDEGATE_KAFKA__ALLOW_PLAINTEXT": "true"}
PATIENCE_S = 60.0
PAGE = {"url": "http://rm:8088/metrics", "resources": {"cpu": "/load"}}


@pytest.fixture(autouse=True)
def no_aws_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    # Else the library asks the machine's metadata service for some.
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    for module in (bootstrap, main):
        monkeypatch.setattr(module, "set_up_logs", lambda *_: None)


@pytest.fixture
def settings(tmp_path: Path) -> Callable[[dict[str, Any]], bootstrap.Settings]:
    secret = tmp_path / "secret"
    secret.write_bytes(b"s" * 32)
    return lambda given: bootstrap.load(ALLOWED, gate={"secret_file": secret}, **given)


@pytest.mark.parametrize(("given", "said"), REFUSALS)
def test_given_a_setting_that_cannot_be_then_a_node_says_which_and_exits_with_78(
    settings: Callable[[dict[str, Any]], bootstrap.Settings],
    capsys: pytest.CaptureFixture[str],
    given: dict[str, Any],
    said: str,
) -> None:
    assert main.run(settings(given)) == EXIT_CONFIGURATION
    written = capsys.readouterr().out
    assert "node_refused" in written
    assert said in written


@pytest.mark.parametrize(("given", "said"), REFUSALS)
def test_given_a_setting_that_cannot_be_then_init_says_which_and_exits_with_78(
    settings: Callable[[dict[str, Any]], bootstrap.Settings],
    capsys: pytest.CaptureFixture[str],
    given: dict[str, Any],
    said: str,
) -> None:
    assert init_command.run(check=True, settings=settings(given)) == EXIT_CONFIGURATION
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("begin", [main.run, partial(init_command.run, True)])
def test_given_a_service_for_keys_that_is_away_then_it_is_worth_another_try(
    settings: Callable[[dict[str, Any]], bootstrap.Settings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    begin: Callable[..., int],
) -> None:
    """Found in review: it passed for wrong configuration (78), which also ends all workers."""

    def away(_: Session) -> None:
        raise CredentialRetrievalError(provider="container-role", error_msg="refused")

    monkeypatch.setattr(Session, "get_credentials", away)
    given = {"dynamodb": {"region": "eu-central-1"}, "startup_wait_s": 0}
    assert begin(settings=settings(given)) == EXIT_TRY_LATER
    said = capsys.readouterr()
    assert "container-role" in said.out + said.err


AWS_WAYS = [
    pytest.param(
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1/", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "{none}"},
        "",
        "No such file",
        id="a pod's identity without its token",
    ),
    pytest.param(
        {"AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/tidegate", "AWS_WEB_IDENTITY_TOKEN_FILE": "{none}"},
        "",
        "No such file",
        id="a service account's role without its token",
    ),
    pytest.param({}, "credential_process = {none}", "No such file", id="a program that is not there"),
    pytest.param({}, "credential_process = echo sorry", "JSONDecodeError", id="a program that talks to people"),
]


@pytest.mark.parametrize("begin", [main.run, partial(init_command.run, True)])
@pytest.mark.parametrize(("environment", "profile", "said"), AWS_WAYS)
def test_given_keys_that_cannot_be_had_then_it_is_said_why_and_worth_another_try(
    settings: Callable[[dict[str, Any]], bootstrap.Settings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    environment: dict[str, str],
    profile: str,
    said: str,
    begin: Callable[..., int],
) -> None:
    """The SDK lets through what its ways to keys meet: a traceback, and for words of a program 78, with which nobody starts a node again."""
    none = str(tmp_path / "none")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(none=none))
    config = tmp_path / "config"
    config.write_text(f"[default]\n{profile.format(none=none)}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    given = {"dynamodb": {"region": "eu-central-1"}, "startup_wait_s": 0}
    assert begin(settings=settings(given)) == EXIT_TRY_LATER
    heard = capsys.readouterr()
    assert said in heard.out + heard.err


@pytest.mark.parametrize(
    ("check", "unsafe", "code"),
    [
        (False, [], 0),
        (False, [False], 0),
        (False, [False, True], 1),
        (True, [], 0),
        (True, [False], 1),
        (True, [True], 1),
    ],
)
def test_given_differences_then_init_fails_for_those_that_keep_nodes_from_serving_and_check_for_all(
    settings: Callable[[dict[str, Any]], bootstrap.Settings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    check: bool,
    unsafe: list[bool],
    code: int,
) -> None:
    """Found by a review: after `tidegate partitions grow` each upgrade of the chart failed in its init job."""
    differences = [Difference(f"difference {number}", each) for number, each in enumerate(unsafe)]
    monkeypatch.setattr(bootstrap, "initialise", lambda *_, **__: differences)
    assert init_command.run(check=check, settings=settings({})) == code
    assert capsys.readouterr().out.count("difference ") == len(unsafe)


@pytest.mark.parametrize("check", [False, True])
def test_given_a_store_that_turns_the_maps_read_away_then_init_is_worth_another_try(
    settings: Callable[[dict[str, Any]], bootstrap.Settings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    check: bool,
) -> None:
    """Found in review: a throttled store made a traceback, and an exit code that is for what differs."""

    def throttled(*_: object, **__: object) -> list[Difference]:
        raise PartlyRead("ThrottlingException", {}, [])

    monkeypatch.setattr(bootstrap, "initialise", throttled)
    assert init_command.run(check=check, settings=settings({})) == EXIT_TRY_LATER
    assert capsys.readouterr().err == "store: ThrottlingException; try again\n"


def test_given_an_endpoint_without_a_scheme_then_it_is_refused_as_a_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEGATE_DYNAMODB__ENDPOINT_URL", "localhost:8000")
    assert main.run() == EXIT_CONFIGURATION
    assert "dynamodb.endpoint_url: String should match pattern" in capsys.readouterr().out


@pytest.mark.parametrize("run", [main.run, init_command.run])
def test_given_an_open_connection_that_nobody_allowed_then_nothing_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Callable[[], int]
) -> None:
    monkeypatch.delenv("TIDEGATE_KAFKA__ALLOW_PLAINTEXT", raising=False)
    assert run() == EXIT_CONFIGURATION
    said = capsys.readouterr()
    assert "kafka: security_protocol PLAINTEXT does not encrypt" in said.out + said.err


# -- the group's session ------------------------------------------------------------------------------------------------------


def guarding(
    monkeypatch: pytest.MonkeyPatch, answer: GroupSession | Exception
) -> tuple[KafkaSettings, list[dict[str, object]]]:
    """What a node guards by, and what it says, when the brokers answer so."""
    said: list[dict[str, object]] = []

    def ask(_: KafkaSettings) -> GroupSession:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(bootstrap, "group_session", ask)
    settings = KafkaSettings(allow_plaintext=True, group_protocol="consumer")
    notices: Any = lambda event, **fields: said.append({"event": event, **fields})  # noqa: E731 - a Notices of one line
    return asyncio.run(bootstrap._guarding(settings, notices)), said


def test_given_the_session_of_the_group_then_the_node_guards_by_it_and_says_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings, said = guarding(monkeypatch, GroupSession("consumer", 8_000, 2_000, "group"))
    assert settings.half_session_ms == 3_000
    bound = {"protocol": "consumer", "session_ms": 8_000, "said_by": "group", "take_over_ms": 10_000, "guard_ms": 3_000}
    assert said == [{"event": "take_over_bound", **bound}]


@pytest.mark.parametrize(
    ("answer", "refusal", "words"),
    [
        pytest.param(GroupSessionUnavailable("silent"), NotYet, "silent", id="no answer"),
        pytest.param(
            GroupProtocolRefused("group_protocol: old"), StartRefused, "kafka.group_protocol", id="old brokers"
        ),
        pytest.param(
            GroupSession("consumer", 3_000, 500, "group"),
            StartRefused,
            "with a session of 3000 ms \\(by group\\) drain_ms_max 2500 must stay below",
            id="too short",
        ),
    ],
)
def test_given_no_session_to_guard_by_then_the_start_says_whether_to_wait(
    monkeypatch: pytest.MonkeyPatch, answer: GroupSession | Exception, refusal: type[Exception], words: str
) -> None:
    with pytest.raises(refusal, match=words):
        guarding(monkeypatch, answer)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_given_the_variable_then_it_is_the_groups_protocol(protocol: str) -> None:
    assert bootstrap.load(ALLOWED | {"TIDEGATE_KAFKA__GROUP_PROTOCOL": protocol}).kafka.group_protocol == protocol


def test_given_sources_of_loads_then_schedules_may_look_at_them_and_at_the_host(
    settings: Callable[[dict[str, Any]], bootstrap.Settings], tmp_path: Path
) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(json.dumps({"load": {"sources": {"yarn": PAGE}}}))
    found = bootstrap.load(ALLOWED | {"TIDEGATE_CONFIG": str(file)})
    assert set(bootstrap._samplers(found)) == {"local", "yarn"}


@pytest.mark.parametrize("change", [{"url": "file:///etc/passwd"}, {"resources": {}}, {"metric": "x"}])
def test_given_a_source_that_is_no_page_then_the_settings_are_refused(
    settings: Callable[[dict[str, Any]], bootstrap.Settings], change: dict[str, Any]
) -> None:
    with pytest.raises(bootstrap.SettingsRefused):
        settings({"load": {"sources": {"yarn": {**PAGE, **change}}}})


def test_given_a_source_with_the_hosts_own_name_then_the_node_refuses_to_start(
    settings: Callable[[dict[str, Any]], bootstrap.Settings], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(settings({"load": {"sources": {"local": PAGE}}})) == EXIT_CONFIGURATION
    assert "load.sources: local is the host of the node itself" in capsys.readouterr().out


def test_given_a_start_that_waits_for_aws_keys_then_an_order_to_end_ends_it(
    settings: Callable[[dict[str, Any]], bootstrap.Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that gives keys and hangs held up the loop, and with it the order: the node ended only when it was killed."""
    may_answer = threading.Event()

    def hangs(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        may_answer.wait(60)
        raise StartRefused("it was waited for")

    monkeypatch.setattr(bootstrap, "_adapters", hangs)
    try:
        assert main.run(settings({"dynamodb": {"region": "eu-central-1"}})) == 0
    finally:
        may_answer.set()


@pytest.mark.parametrize("asked", ["sdk_client", "group_session"])
def test_given_a_start_whose_look_at_a_brick_hangs_then_an_order_to_end_ends_the_process(
    settings: Callable[[dict[str, Any]], bootstrap.Settings], monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """A program that gives keys hung at its second call: the order was heard, and the process stayed until it was killed."""
    may_answer = threading.Event()
    lookers: list[threading.Thread] = []

    def hangs(*_: object) -> None:
        lookers.append(threading.current_thread())
        os.kill(os.getpid(), signal.SIGTERM)
        may_answer.wait()
        raise BotoCoreError

    async def known(*_: object) -> None:
        """The facts, which come before the group's session."""

    monkeypatch.setattr(bootstrap, asked, hangs)
    if asked == "group_session":
        monkeypatch.setattr(bootstrap, "node_facts", known)
    # Else both would wait for each other: the process's end for the look, and the look for this.
    give_up = threading.Timer(PATIENCE_S, may_answer.set)
    give_up.start()
    try:
        assert main.run(settings({"dynamodb": {"region": "eu-central-1"}})) == 0
        assert not may_answer.is_set(), "the loop's end has waited for the look"
        assert all(looker.daemon for looker in lookers), "the interpreter's end waits for the look"
    finally:
        may_answer.set()
        give_up.cancel()
    assert lookers
