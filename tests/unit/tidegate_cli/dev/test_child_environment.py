from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tidegate_cli.dev.child_environment import Endpoints, Wiring, choose_port, given_api_port, given_endpoints
from tidegate_cli.dev.errors import SettingsWrong, StackFailed
from tidegate_cli.dev.stack_folder import StackFolder


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    return Wiring(
        kafka="127.0.0.1:9092",
        dynamodb="http://127.0.0.1:8000",
        local_kafka=True,
        local_dynamodb=True,
        api_port=8080,
        node_ports=(8081, 8082),
        folder=StackFolder(tmp_path),
        settings={"TIDEGATE_MINIMUM_PERIOD_MS": "4000"},
    )


def test_given_no_settings_then_both_bricks_are_local() -> None:
    assert given_endpoints({}) == Endpoints(None, None)


def test_given_endpoints_in_the_environment_then_they_are_used() -> None:
    environment = {
        "TIDEGATE_KAFKA__BOOTSTRAP_SERVERS": "broker:9092",
        "TIDEGATE_DYNAMODB__ENDPOINT_URL": "http://store:8000",
    }
    assert given_endpoints(environment) == Endpoints("broker:9092", "http://store:8000")


def test_given_a_settings_file_then_the_environment_wins_over_it(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("kafka: {bootstrap_servers: 'file:9092'}\ndynamodb: {endpoint_url: 'http://file:8000'}\n")
    environment = {"TIDEGATE_CONFIG": str(file), "TIDEGATE_KAFKA__BOOTSTRAP_SERVERS": "broker:9092"}
    assert given_endpoints(environment) == Endpoints("broker:9092", "http://file:8000")


def test_given_a_settings_file_without_endpoints_then_bricks_are_local(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("kafka: {session_ms: 6000}\n")
    assert given_endpoints({"TIDEGATE_CONFIG": str(file)}) == Endpoints(None, None)


def test_given_a_settings_file_that_is_gone_then_the_error_names_it(tmp_path: Path) -> None:
    with pytest.raises(StackFailed, match=r"gone\.yaml"):
        given_endpoints({"TIDEGATE_CONFIG": str(tmp_path / "gone.yaml")})


def test_given_a_port_in_a_settings_file_then_the_environment_wins_over_it(tmp_path: Path) -> None:
    """The file's was passed over."""
    file = tmp_path / "tidegate.yaml"
    file.write_text("api: {port: 9000}\n")
    config = {"TIDEGATE_CONFIG": str(file)}
    assert given_api_port(config) == 9_000
    assert given_api_port({**config, "TIDEGATE_API__PORT": "9001"}) == 9_001
    assert given_api_port({**config, "TIDEGATE_API__PORT": ""}) == 9_000
    assert given_api_port({}) is None


@pytest.mark.parametrize("port", ["abc", "0", "99999", "true", "[8080]", "8080.5"])
def test_given_a_wrong_port_in_a_settings_file_then_the_error_names_field_value_and_what_is_allowed(
    tmp_path: Path, port: str
) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text(f"api: {{port: {port}}}\n")
    with pytest.raises(SettingsWrong, match=r"api\.port in .*tidegate\.yaml is '.+'; choose a port from 1 to 65535"):
        given_api_port({"TIDEGATE_CONFIG": str(file)})


def test_given_a_settings_file_without_sections_then_the_error_says_so(tmp_path: Path) -> None:
    """It was passed over until a node refused it."""
    file = tmp_path / "tidegate.yaml"
    file.write_text("- api\n")
    with pytest.raises(SettingsWrong, match="holds a list; write a mapping of sections"):
        given_endpoints({"TIDEGATE_CONFIG": str(file)})


def test_given_two_nodes_then_each_has_its_own_name_and_port_and_all_share_the_rest(wiring: Wiring) -> None:
    first, second = wiring.node_environment(1), wiring.node_environment(2)
    differing = {name for name in first if first[name] != second[name]}
    assert differing == {"TIDEGATE_NODE", "TIDEGATE_KAFKA__CLIENT_ID", "TIDEGATE_HEALTH__PORT"}
    assert first["TIDEGATE_GATE__URL"] == "http://127.0.0.1:8080"
    assert first["TIDEGATE_MINIMUM_PERIOD_MS"] == "4000"


def test_given_any_child_then_the_secret_travels_as_a_file(wiring: Wiring) -> None:
    """The environment of a child stands on a command line that everybody on the machine can read."""
    for environment in (wiring.init_environment(), wiring.node_environment(1), wiring.api_environment()):
        assert environment["TIDEGATE_GATE__SECRET_FILE"] == str(wiring.folder.gate_secret)
        assert not [name for name in environment if name.endswith("SECRET")]


def test_given_nodes_and_api_then_they_read_the_same_folder_of_runs(wiring: Wiring) -> None:
    node, api = wiring.node_environment(1), wiring.api_environment()
    assert node["TIDEGATE_DATA_DIR"] == api["TIDEGATE_DATA_DIR"] == str(wiring.folder.path)


def test_given_a_store_of_the_users_then_their_credentials_stay(wiring: Wiring, tmp_path: Path) -> None:
    elsewhere = Wiring("b:1", "http://s:2", False, False, 8080, (8081,), StackFolder(tmp_path), {})
    assert "AWS_ACCESS_KEY_ID" in wiring.api_environment()
    assert not [name for name in elsewhere.api_environment() if name.startswith("AWS_")]


def test_given_a_taken_port_then_another_one_is_chosen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert choose_port(port, frozenset()) != port


def test_given_a_port_that_is_spoken_for_then_another_one_is_chosen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as once_taken:
        port = once_taken.getsockname()[1]
    assert choose_port(port, frozenset({port})) != port
