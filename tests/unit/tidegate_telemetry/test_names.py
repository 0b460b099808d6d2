"""Every name that the sources use stands in the table, and every name of the table is used."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate_telemetry.log_events import (
    API_EVENTS,
    CORE_NOTICES,
    KAFKA_NOTICES,
    LOG_EVENTS,
    NODE_EVENTS,
    TRANSACTION_EVENTS,
    LogEvent,
)
from tidegate_telemetry.metric_names import API_METRICS, METRICS, NODE_METRICS, Metric
from tidegate_telemetry.metrics import Metrics

ROOT = Path(__file__).parents[3]
CORE = ROOT / "shared" / "tidegate_core"
KAFKA = ROOT / "shared" / "tidegate_kafka"
NODE = ROOT / "services" / "tidegate_node"
API = ROOT / "services" / "tidegate_api"
TELEMETRY = ROOT / "shared" / "tidegate_telemetry"
SAYING = frozenset({"note", "Notice", "notices", "_notices", "_noticed", "_say_seldom"})
MEASURING = frozenset({"count", "observe", "set", "value"})


def _first_texts(folder: Path, callees: frozenset[str]) -> Iterator[str]:
    """First arguments, as far as they are literal texts, of calls to these names."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and _name(node.func) in callees:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _said_by_node() -> set[str]:
    said = set(_first_texts(NODE, SAYING))
    # The entry point speaks through a notifier that it makes itself.
    main = (NODE / "main.py").read_text(encoding="utf-8")
    return said | set(TRANSACTION_EVENTS) | {name for name in NODE_EVENTS if f'Notifier(Metrics())("{name}"' in main}


def test_given_a_notice_of_the_core_then_it_is_in_the_table() -> None:
    assert set(_first_texts(CORE, SAYING)) == set(CORE_NOTICES)


def test_given_a_notice_of_the_kafka_adapter_then_it_is_in_the_table() -> None:
    assert set(_first_texts(KAFKA, SAYING)) == set(KAFKA_NOTICES)


def test_given_an_event_that_the_node_logs_then_it_is_in_the_table() -> None:
    assert _said_by_node() | {"client_said"} == set(NODE_EVENTS)


def test_given_an_event_that_the_api_logs_then_it_is_in_the_table() -> None:
    assert set(_first_texts(API, SAYING)) | set(TRANSACTION_EVENTS) == set(API_EVENTS)


def test_given_an_event_that_both_log_of_topics_then_it_is_in_the_table() -> None:
    assert set(_first_texts(TELEMETRY, SAYING)) >= set(TRANSACTION_EVENTS)


@pytest.mark.parametrize(
    ("folder", "events", "metrics"),
    [
        pytest.param(NODE, CORE_NOTICES | KAFKA_NOTICES | NODE_EVENTS, NODE_METRICS, id="node"),
        # The API embeds the Kafka adapter as well: what that counts would have to stand in the API's table.
        pytest.param(API, KAFKA_NOTICES | API_EVENTS, API_METRICS, id="api"),
    ],
)
def test_given_a_metric_that_is_used_then_it_is_in_its_process_s_table_and_none_is_idle(
    folder: Path, events: dict[str, LogEvent], metrics: dict[str, Metric]
) -> None:
    """CD-107."""
    said = [
        *_first_texts(folder, MEASURING),
        *_first_texts(TELEMETRY, MEASURING),
    ]  # Of the store's calls: either one's.
    used = {name for name in said if name.startswith("tidegate_")}
    counted = {event.counted for event in events.values() if event.counted is not None}

    assert used | counted == set(metrics)


@pytest.mark.parametrize(
    ("name", "labels", "what"),
    [
        ("tidegate_launches_total", {"program": "pyspark", "answer": "submitted"}, "launches that succeeded"),
        ("tidegate_launches_total", {"program": "pyspark", "answer": "submitfailed"}, "launches that failed"),
        ("tidegate_fire_lateness_seconds", {"plane": "run"}, "latency"),
        (
            "tidegate_dead_letters_total",
            {"topic": "tidegate.events", "error_class": "invalid"},
            "notifications that failed",
        ),
    ],
)
def test_given_what_a_scheduler_is_watched_by_then_it_is_on_the_page(
    name: str, labels: dict[str, str], what: str
) -> None:
    """CD-107: by program, plane and topic; a schedule's name is no label, because there may be millions of them."""
    metrics = Metrics(NODE_METRICS)
    if NODE_METRICS[name].kind == "counter":
        metrics.count(name, **labels)
    else:
        metrics.observe(name, 0.5, **labels)
    page = metrics.exposition()[0].decode()
    told = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    series = name if NODE_METRICS[name].kind == "counter" else f"{name}_count"
    assert f"{series}{{{told}}} 1.0" in page.splitlines(), what


@pytest.mark.parametrize("name", ["run_started", "run_finished", "api_request", "serving", "assigned"])
def test_given_a_normal_event_then_it_is_no_warning(name: str) -> None:
    assert LOG_EVENTS[name].level == "info"


@pytest.mark.parametrize("name", sorted(LOG_EVENTS))
def test_given_an_event_then_what_it_counts_takes_its_labels(name: str) -> None:
    event = LOG_EVENTS[name]

    assert event.help.endswith(".")
    if event.counted is not None:
        assert METRICS[event.counted].labels == event.labels


@pytest.mark.parametrize("name", sorted(METRICS))
def test_given_a_metric_then_its_name_follows_the_rules(name: str) -> None:
    metric = METRICS[name]

    assert name.startswith("tidegate_")
    assert metric.help.endswith(".")
    assert name.endswith("_total") == (metric.kind == "counter")
    assert bool(metric.buckets) == (metric.kind == "histogram")
