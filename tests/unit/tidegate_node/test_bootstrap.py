"""Settings that only a client's own library understands: a sentence and exit 78, not a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidegate_node import bootstrap, init, main
from tidegate_node.startup import EXIT_CONFIGURATION

REFUSALS = [
    pytest.param({"dynamodb": {}}, "dynamodb.region is not set", id="no region"),
    pytest.param({"dynamodb": {"endpoint_url": "http://"}}, "dynamodb: ", id="no host"),
    pytest.param(
        {"dynamodb": {"region": "eu-central-1"}, "kafka": {"extra": {"security.protokoll": "ssl"}}},
        'kafka: No such configuration property: "security.protokoll"',
        id="no such property",
    ),
]


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
    return lambda given: bootstrap.load({}, gate={"secret_file": secret}, **given)


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
    assert init.run(check=True, settings=settings(given)) == EXIT_CONFIGURATION
    assert capsys.readouterr().err.startswith(said)


def test_given_an_endpoint_without_a_scheme_then_it_is_refused_as_a_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEGATE_DYNAMODB__ENDPOINT_URL", "localhost:8000")
    assert main.run() == EXIT_CONFIGURATION
    assert "dynamodb.endpoint_url: String should match pattern" in capsys.readouterr().out
