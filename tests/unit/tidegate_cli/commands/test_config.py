"""`tidegate config show`: settings with source and unit, masked secrets, and an error for each wrong one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tidegate_cli import main


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("TIDEGATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TIDEGATE_KAFKA__ALLOW_PLAINTEXT", "true")
    monkeypatch.setenv("TIDEGATE_STATE_DIR", str(tmp_path))


def _shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    assert main.run([*arguments, "-o", "json"]) == 0
    return {f"{row['process']}.{row['name']}": row for row in json.loads(capsys.readouterr().out)}


def test_given_file_and_environment_then_each_value_has_its_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("shards: 64\nhealth: {port: 1}\n", encoding="utf-8")
    monkeypatch.setenv("TIDEGATE_CONFIG", str(file))
    monkeypatch.setenv("TIDEGATE_HEALTH__PORT", "2")

    rows = _shown(capsys, "config", "show", "node")

    assert (rows["node.shards"]["value"], rows["node.shards"]["source"]) == (64, "file")
    assert (rows["node.health.port"]["value"], rows["node.health.port"]["source"]) == (2, "environment")
    assert (rows["node.kafka.session_ms"]["unit"], rows["node.kafka.session_ms"]["source"]) == ("ms", "default")
    assert rows["node.health.port"]["variable"] == "TIDEGATE_HEALTH__PORT"


def test_given_a_value_equal_to_the_default_then_its_source_is_still_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader records sources; a comparison with the default would be a guess."""
    monkeypatch.setenv("TIDEGATE_SHARDS", "256")
    assert _shown(capsys, "config", "show", "node")["node.shards"]["source"] == "environment"


def test_given_a_map_from_both_then_each_of_its_values_has_its_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("quotas: {flights: {pending_max: 5}}\n", encoding="utf-8")
    monkeypatch.setenv("TIDEGATE_CONFIG", str(file))
    monkeypatch.setenv("TIDEGATE_QUOTAS", '{"flights": {"schedules_max": 3}}')

    rows = _shown(capsys, "config", "show", "api")

    assert rows["api.quotas.flights.pending_max"]["source"] == "file"
    assert rows["api.quotas.flights.schedules_max"]["source"] == "environment"
    assert rows["api.quotas.flights.schedules_max"]["variable"] == "TIDEGATE_QUOTAS"


@pytest.mark.parametrize("output", ["table", "json", "yaml", "name"])
def test_given_secrets_then_no_output_has_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.setenv("TIDEGATE_KAFKA__SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("TIDEGATE_KAFKA__SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("TIDEGATE_KAFKA__SASL_USERNAME", "ana")
    monkeypatch.setenv("TIDEGATE_KAFKA__SASL_PASSWORD", "hush")
    login = "ana:hush"
    monkeypatch.setenv("TIDEGATE_GATE__URL", f"http://{login}@api")

    assert main.run(["config", "show", "-o", output]) == 0

    shown = capsys.readouterr()
    assert "kafka.sasl_password" in shown.out
    assert "hush" not in shown.out + shown.err


def test_given_the_api_s_own_defaults_then_they_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    rows = _shown(capsys, "config", "show", "api")
    assert rows["api.kafka.client_id"]["value"] == "tidegate-api"
    assert rows["api.dynamodb.read_timeout_s"]["value"] == 2.0


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("TIDEGATE_HEALTH__PORT", "x", "health.port: Input should be a valid integer"),
        ("TIDEGATE_HEALTH__PORT", "x", "; correct TIDEGATE_HEALTH__PORT in the environment"),
        ("TIDEGATE_HELTH__PORT", "1", "did you mean TIDEGATE_HEALTH__PORT?; remove or rename TIDEGATE_HELTH__PORT"),
        ("TIDEGATE_NAMESPACES__EVENTS", '["A"]', "; correct TIDEGATE_NAMESPACES__EVENTS in the environment"),
        ("TIDEGATE_QUOTAS", '{"a": {"pending_max": -1}}', "; correct TIDEGATE_QUOTAS in the environment"),
        ("TIDEGATE_KAFKA__SESSION_MS", "1000", "kafka: heartbeat_ms 500 is more than a third"),
    ],
)
def test_given_a_wrong_setting_then_the_error_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str, text: str, said: str
) -> None:
    monkeypatch.setenv(variable, text)

    assert main.run(["config", "show", "node", "-o", "json"]) == 78

    shown = capsys.readouterr()
    assert json.loads(shown.out) == []
    assert "the settings of node have to be corrected:" in shown.err
    assert said in shown.err


def test_given_a_wrong_value_in_the_file_then_the_error_names_the_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("health: {port: 70000}\n", encoding="utf-8")
    monkeypatch.setenv("TIDEGATE_CONFIG", str(file))

    assert main.run(["config", "show"]) == 78

    shown = capsys.readouterr()
    assert "correct health.port in the file that TIDEGATE_CONFIG names" in shown.err
    assert "api.port" in shown.out, "the other processes are shown"
    assert "node.health" not in shown.out


def test_given_an_unknown_store_setting_of_the_api_then_it_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_DYNAMODB__CONNECTION_MAX", "1")
    assert main.run(["config", "show", "api"]) == 78
    assert "TIDEGATE_DYNAMODB__CONNECTION_MAX: no such setting" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "variable", "source"),
    [([], None, "default"), ([], "http://a", "environment"), (["--api", "http://b"], "http://a", "option")],
)
def test_given_the_address_of_the_api_then_its_source_is_known(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    variable: str | None,
    source: str,
) -> None:
    if variable:
        monkeypatch.setenv("TIDEGATE_API_URL", variable)
    assert _shown(capsys, *arguments, "config", "show", "cli")["cli.api_url"]["source"] == source


def test_given_changed_then_defaults_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(_shown(capsys, "config", "show", "node", "--changed")) == {"node.kafka.allow_plaintext"}


def test_given_help_then_it_names_sources_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["config", "show", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "Secrets are masked" in words
    assert "78 a setting is wrong" in words
