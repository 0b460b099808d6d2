"""Settings of node and API: environment over file over defaults, and every mistake named."""

import json
from pathlib import Path

import pytest

from tidegate_api import bootstrap
from tidegate_node import bootstrap as node
from tidegate_node.bootstrap import Settings, load
from tidegate_node.settings import OTHERS
from tidegate_ports.common.settings_loader import SettingsRefused, Source, load_with_sources

ALLOWED = {"TIDEGATE_KAFKA__ALLOW_PLAINTEXT": "true"}


def _refusal(environment: dict[str, str]) -> str:
    with pytest.raises(SettingsRefused) as caught:
        load(ALLOWED | environment)
    return str(caught.value)


def test_given_nothing_then_every_field_has_its_default() -> None:
    settings = load(ALLOWED)

    assert settings.health.port == 8081
    assert settings.gate.secret_file is None
    assert settings.kafka.session_ms == 6_000


def test_given_the_chart_s_variables_then_they_are_taken() -> None:
    settings = load(
        ALLOWED
        | {
            "TIDEGATE_KAFKA__BOOTSTRAP_SERVERS": "kafka:9092",
            "TIDEGATE_DYNAMODB__ENDPOINT_URL": "http://dynamo:8000",
            "TIDEGATE_DYNAMODB__TABLE_PREFIX": "prod-",
            "TIDEGATE_GATE__SECRET_FILE": "/etc/tidegate/gate/secret",
            "TIDEGATE_GATE__URL": "http://api",
            "TIDEGATE_HEALTH__HOST": "0.0.0.0",
            "TIDEGATE_HEALTH__PORT": "9000",
            "TIDEGATE_API__HOST": "0.0.0.0",
            "TIDEGATE_API__PORT": "8080",
            "TIDEGATE_STATE_DIR": "/tmp",
        }
    )

    assert settings.kafka.bootstrap_servers == "kafka:9092"
    assert settings.dynamodb.table_prefix == "prod-"
    assert settings.gate.secret_file == Path("/etc/tidegate/gate/secret")
    assert (settings.health.host, settings.health.port) == ("0.0.0.0", 9000)


def test_given_a_file_then_the_environment_wins_over_it_and_it_over_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("health: {port: 1, host: '::1'}\napi: {port: 5}\nshards: 64\n", encoding="utf-8")

    settings = load(ALLOWED | {"TIDEGATE_CONFIG": str(file), "TIDEGATE_HEALTH__PORT": "2"})

    assert (settings.health.port, settings.health.host, settings.shards) == (2, "::1", 64)


def test_given_sections_by_hand_then_they_win_over_everything() -> None:
    assert load(ALLOWED | {"TIDEGATE_SHARDS": "16"}, shards=32).shards == 32


def test_given_the_process_s_own_environment_then_it_does_not_leak_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_SHARDS", "99")

    assert load(ALLOWED).shards == Settings.model_fields["shards"].default


def test_given_a_json_map_in_a_variable_then_it_is_read() -> None:
    settings = load(ALLOWED | {"TIDEGATE_KAFKA__EXTRA": '{"client.rack": "a"}'})

    assert settings.kafka.extra == {"client.rack": "a"}


def test_given_quotas_then_nodes_and_api_read_the_same(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text('quotas: {"*": {catch_up_runs_max: 24}, flights: {minimum_period_ms: 60000}}', encoding="utf-8")
    environment = ALLOWED | {"TIDEGATE_CONFIG": str(file)}
    assert node.load(environment).quotas == bootstrap.load(environment).quotas
    assert node.load(environment).quotas["flights"].minimum_period_ms == 60_000
    with pytest.raises(SettingsRefused, match=r"quotas\.a\.minimum_period_ms"):
        node.load({"TIDEGATE_QUOTAS": '{"a": {"minimum_period_ms": 1}}'})


@pytest.mark.parametrize("name", ["Flights", "team-*", "", "flights/a"])
def test_given_a_quota_for_what_no_namespace_can_be_then_it_is_refused(name: str) -> None:
    """It would hold for nobody, and nobody would notice."""
    environment = ALLOWED | {"TIDEGATE_QUOTAS": json.dumps({name: {"minimum_period_ms": 60_000}})}
    for of_service in (node.load, bootstrap.load):
        with pytest.raises(SettingsRefused, match="quotas"):
            of_service(environment)


def test_given_a_login_in_the_address_of_a_page_then_it_is_refused_and_not_told() -> None:
    """It would not be sent, and stand in what everybody is told of a page that does not answer."""
    login = "ana:hush"
    source = {"url": f"http://{login}@metrics:9090/load", "resources": {"cpu": "/cpu"}}
    refusal = _refusal({"TIDEGATE_LOAD__SOURCES": json.dumps({"metrics": source})})
    assert "load.sources.metrics.url: holds a user name or a password" in refusal
    assert "hush" not in refusal


SHARED = {
    "TIDEGATE_KAFKA__ALLOW_PLAINTEXT": "true",
    "TIDEGATE_KAFKA__BOOTSTRAP_SERVERS": "kafka:9092",
    "TIDEGATE_GATE__SECRET_FILE": "/secret",
    "TIDEGATE_GATE__URL": "http://api",
    "TIDEGATE_API__PORT": "1",
    "TIDEGATE_API_URL": "http://api",
    "TIDEGATE_NODE": "n",
    "TIDEGATE_SHARDS": "16",
    "TIDEGATE_STARTUP_WAIT_S": "1",
    "TIDEGATE_HEALTH__PORT": "2",
    "TIDEGATE_LAUNCHER__HOST": "h",
    "TIDEGATE_LOAD__SOURCES": "{}",
    "TIDEGATE_NAMESPACES__EVENTS": '["flights", "team-*"]',
    "TIDEGATE_LOG__LEVEL": "warning",
    "TIDEGATE_CACHE": "/cache",
    "TIDEGATE_STATE_DIR": "/state",
}
"""As one ConfigMap or shell holds it for everything."""


def test_given_one_environment_for_all_then_each_service_takes_its_own() -> None:
    assert (node.load(SHARED).health.port, node.load(SHARED).log.level) == (2, "warning")
    assert (bootstrap.load(SHARED).api.port, bootstrap.load(SHARED).log.level) == (1, "warning")


def test_given_one_file_for_all_then_each_service_takes_its_own(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("health: {port: 2}\napi: {port: 1}\nshards: 16\nstartup_wait_s: 1\n", encoding="utf-8")
    environment = ALLOWED | {"TIDEGATE_CONFIG": str(file)}

    assert node.load(environment).health.port == 2
    assert bootstrap.load(environment).api.port == 1


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("TIDEGATE_API_PORT", "TIDEGATE_API_PORT: no such setting; did you mean TIDEGATE_API__PORT?"),
        ("TIDEGATE_API__PROT", "api.prot: no such setting; did you mean port?"),
        ("TIDEGATE_KAFKA__LINGER", "kafka.linger: no such setting; did you mean linger_ms?"),
        ("TIDEGATE_GATE__SECRET_FIEL", "gate.secret_fiel: no such setting; did you mean secret_file?"),
        (
            "TIDEGATE_MINIMUM_PERIOD",
            "TIDEGATE_MINIMUM_PERIOD: no such setting; did you mean TIDEGATE_MINIMUM_PERIOD_MS?",
        ),
    ],
)
def test_given_a_mistyped_setting_of_the_api_then_the_right_one_is_named(variable: str, said: str) -> None:
    with pytest.raises(SettingsRefused) as caught:
        bootstrap.load(ALLOWED | {variable: "1"})

    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TIDEGATE_GATE_URL", "http://x", "did you mean TIDEGATE_GATE__URL?"),
        ("TIDEGATE_HELTH__PORT", "1", "did you mean TIDEGATE_HEALTH__PORT?"),
        (
            "TIDEGATE_KAFKA__BOOTSTRAP_SERVER",
            "x",
            "kafka.bootstrap_server: no such setting; did you mean bootstrap_servers?",
        ),
        ("TIDEGATE_HEALTH__PORT", "x", "health.port: Input should be a valid integer"),
        ("TIDEGATE_HEALTH__PORT", "70000", "health.port: Input should be less than or equal to 65535"),
        ("TIDEGATE_KAFKA__SESSION_MS", "1000", "kafka: heartbeat_ms 500 is more than a third"),
        ("TIDEGATE_KAFKA__EXTRA", "{", "TIDEGATE_KAFKA__EXTRA: must be JSON"),
        ("TIDEGATE_NAMESPACES__EVENTS", "flights,team-a", "TIDEGATE_NAMESPACES__EVENTS: must be JSON, such as ["),
        ("TIDEGATE_QUOTAS", "flights", "TIDEGATE_QUOTAS: must be JSON"),
        ("TIDEGATE_CONFIG", "/nowhere.yaml", "TIDEGATE_CONFIG names /nowhere.yaml, which cannot be read"),
    ],
)
def test_given_a_mistake_then_it_is_named(variable: str, value: str, said: str) -> None:
    assert said in _refusal({variable: value})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n- b\n", "should be a mapping"),
        ("helth: {port: 1}\n", "helth: no such setting; did you mean health?"),
        ("a: [\n", "cannot be read"),
        ("health: {port: 1}\nshards: 4\nhealth: {host: '::1'}\n", 'the key "health" stands twice'),
        ("quotas:\n  flights: {pending_max: 1}\n  flights: {schedules_max: 2}\n", 'the key "flights" stands twice'),
        ("shards: 2026-13-01\n", "shards: "),
        ("shards: !!int four\n", "cannot be read"),
    ],
)
def test_given_a_file_with_a_mistake_then_it_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text(text, encoding="utf-8")

    assert said in _refusal({"TIDEGATE_CONFIG": str(file)})


@pytest.mark.parametrize(
    "password", ["@hush", '"hush', "hush: a", "%hush", "*hush", "!hush", "[hush", "&hush", "hush\x00"]
)
def test_given_a_file_that_is_no_yaml_then_its_place_is_named_and_nothing_that_stands_in_it(
    tmp_path: Path, password: str
) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text(f"kafka:\n  sasl_password: {password}\n  sasl_username: &hush\n", encoding="utf-8")

    refusal = _refusal({"TIDEGATE_CONFIG": str(file)})

    assert f"TIDEGATE_CONFIG names {file}, which cannot be read: it is not YAML" in refusal
    assert "hush" not in refusal


def test_given_a_secret_in_a_variable_that_has_to_be_json_then_it_is_not_shown() -> None:
    said = _refusal({"TIDEGATE_KAFKA": "sasl_password=hush-hush"})
    assert "TIDEGATE_KAFKA: must be JSON" in said
    assert "hush" not in said


def test_given_every_field_then_it_says_what_it_is_for() -> None:
    for name, field in Settings.model_fields.items():
        sections = getattr(field.annotation, "model_fields", None)
        for inner, described in (sections or {name: field}).items():
            assert described.description, f"{name}.{inner}"


def test_given_values_from_three_places_then_the_loader_records_the_source_of_each(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("health: {port: 1, host: '::1'}\nshards: 64\n", encoding="utf-8")
    environment = ALLOWED | {"TIDEGATE_CONFIG": str(file), "TIDEGATE_HEALTH__PORT": "2"}

    sources = load_with_sources(Settings, environment, OTHERS, shards=32).sources

    assert sources == {
        ("kafka", "allow_plaintext"): Source.ENVIRONMENT,
        ("health", "port"): Source.ENVIRONMENT,
        ("health", "host"): Source.FILE,
        ("shards",): Source.CALLER,
    }
