"""The chart without Helm: values, schema and templates agree with each other and with the project."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from tidegate_launchers.local.run_folder import RunFolder
from tidegate_node.settings import NodeSettings

# Helm itself puts it there.
NOT_IN_VALUES = frozenset({"global"})


@pytest.fixture(scope="module")
def chart() -> Path:
    return Path(__file__).parents[2] / "helm" / "tidegate"


@pytest.fixture(scope="module")
def values(chart: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((chart / "values.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def schema(chart: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((chart / "values.schema.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def templates(chart: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((chart / "templates").iterdir())}


def _paths(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        yield prefix + name
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{name}.")


def _schema_paths(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in schema.get("properties", {}).items():
        yield prefix + name
        yield from _schema_paths(value, f"{prefix}{name}.")


def _with(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(values))
    *parents, last = path.split(".")
    place = changed
    for parent in parents:
        place = place[parent]
    place[last] = value
    return changed


def test_given_the_chart_then_its_versions_are_the_projects(chart: Path) -> None:
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    version = re.search(r'^version = "(.+)"$', (chart.parents[1] / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert (described["version"], described["appVersion"]) == (version[1], version[1])


def test_given_a_value_then_a_comment_stands_above_it(chart: Path) -> None:
    lines = (chart / "values.yaml").read_text().splitlines()
    keys = [index for index, line in enumerate(lines) if re.match(r"^\s*[A-Za-z]\w*:", line)]
    # Inside `resources` the keys are Kubernetes' own; the comment above the block explains it. A block whose first
    # child has its comment, such as `kafka:`, needs none of its own.
    uncommented = [
        lines[index]
        for index in keys
        if not lines[index - 1].lstrip().startswith("#")
        and not re.match(r"^\s+(requests|limits|cpu|memory):", lines[index])
        and not lines[index + 1].lstrip().startswith("#")
    ]
    assert uncommented == []


def test_given_the_defaults_then_the_schema_accepts_them(values: dict[str, Any], schema: dict[str, Any]) -> None:
    Draft7Validator.check_schema(schema)
    assert [error.message for error in Draft7Validator(schema).iter_errors(values)] == []


def test_given_a_value_then_the_schema_knows_it_and_no_other(values: dict[str, Any], schema: dict[str, Any]) -> None:
    in_values = {path for path in _paths(values) if not re.search(r"\.(requests|limits)\.", path)}
    assert set(_schema_paths(schema)) - NOT_IN_VALUES == in_values


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("replicaCount", 3),
        ("node.replicas", "two"),
        ("node.replicas", -1),
        ("node.maxUnavailable", 0),
        ("node.maxUnavailable", "half"),
        ("node.dataSizeLimit", "big"),
        ("node.tmpSizeLimit", "big"),
        ("api.port", 70_000),
        ("api.service.type", "ExternalName"),
        ("kafka.bootstrapServers", ""),
        ("kafka.bootstrapServers", "kafka"),
        ("kafka.securityProtocol", "TLS"),
        ("kafka.allowPlaintext", "yes"),
        ("kafka.saslMechanism", "GSSAPI"),
        ("kafka.sslCaLocation", "ca.pem"),
        ("dynamodb.tablePrefix", "no spaces"),
        ("dynamodb.endpointUrl", "localhost:8000"),
        ("image.pullPolicy", "Sometimes"),
        ("image.digest", "sha256:short"),
        ("settings", {"lower_case": "x"}),
        ("settings", {"TIDEGATE_NUMBER": 1}),
        ("init.activeDeadlineSeconds", 1),
        ("init.tolerations", "all"),
        # Its StatefulSet's pods would need a label of 64 characters.
        ("fullnameOverride", "a" * 48),
    ],
)
def test_given_a_wrong_value_then_the_schema_refuses_it(
    path: str, wrong: Any, values: dict[str, Any], schema: dict[str, Any]
) -> None:
    assert not Draft7Validator(schema).is_valid(_with(values, path, wrong))


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("kafka.bootstrapServers", "broker-0.kafka:9092,broker-1.kafka:9092"),
        ("kafka.securityProtocol", "SASL_SSL"),
        ("kafka.allowPlaintext", True),
        ("dynamodb.endpointUrl", "http://dynamodb-local:8000"),
        ("image.digest", "sha256:" + "0" * 64),
        ("node.maxUnavailable", "25%"),
        ("settings", {"TIDEGATE_LOG__LEVEL": "debug"}),
        ("extraEnvFrom", [{"secretRef": {"name": "kafka-login"}}]),
    ],
)
def test_given_a_right_value_then_the_schema_accepts_it(
    path: str, right: Any, values: dict[str, Any], schema: dict[str, Any]
) -> None:
    assert Draft7Validator(schema).is_valid(_with(values, path, right))


def test_given_a_program_that_shuffles_then_its_room_is_that_of_the_nodes_data_less_what_is_kept_of_others(
    values: dict[str, Any], templates: dict[str, str]
) -> None:
    settings = NodeSettings()
    scratch = RunFolder.within(settings.data_dir, "0001-mfrggzdfmztwq2lkn5wg63tqoe", 1).scratch
    assert f"- name: data\n    mountPath: {settings.data_dir}\n" in templates["_helpers.tpl"]
    assert scratch.is_relative_to(settings.data_dir)
    limit = values["node"]["dataSizeLimit"]
    assert limit.endswith("Gi")
    assert int(limit.removesuffix("Gi")) * 1024**3 - settings.launcher.keep_runs_bytes >= 2 * 1024**3


def test_given_a_template_then_it_reads_only_values_that_exist(
    values: dict[str, Any], templates: dict[str, str]
) -> None:
    known = set(_paths(values))
    read = {path for text in templates.values() for path in re.findall(r"\.Values\.([A-Za-z.]+\w)", text)}
    assert read
    assert read - known == set()


def test_given_a_value_then_a_template_reads_it(values: dict[str, Any], templates: dict[str, str]) -> None:
    """A value that nothing reads is a promise that nobody keeps."""
    text = "\n".join(templates.values())
    # `tidegate.placement` and `tidegate.image` take a part of the values, and name its members alone.
    leaves = {path for path in _paths(values) if not any(other.startswith(f"{path}.") for other in _paths(values))}
    leaves = {re.sub(r"\.(requests|limits)\..*", "", path) for path in leaves}
    unread = {path for path in leaves if f".Values.{path}" not in text and f".{path.rpartition('.')[2]}" not in text}
    assert unread == set()


def test_given_a_template_then_its_braces_are_balanced(templates: dict[str, str]) -> None:
    for name, text in templates.items():
        assert text.count("{{") == text.count("}}"), name
        opened = len(re.findall(r"\{\{-? *(?:if|range|with|define|block)\b", text))
        closed = len(re.findall(r"\{\{-? *end\b", text))
        assert opened == closed, name
