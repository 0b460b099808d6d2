"""Metrics: those of the table, each process with its own."""

import pytest

from tidegate_telemetry.metric_names import METRICS
from tidegate_telemetry.metrics import Metrics


def test_given_use_then_the_page_shows_it() -> None:
    metrics = Metrics()

    metrics.count("tidegate_dead_letters_total", topic="t", error_class="invalid")
    metrics.observe("tidegate_fire_lateness_seconds", 0.02, plane="run")
    metrics.set("tidegate_owned_shards", 12)

    body, content_type = metrics.exposition()
    assert content_type.startswith("text/plain")
    lines = body.decode().splitlines()
    assert 'tidegate_dead_letters_total{error_class="invalid",topic="t"} 1.0' in lines
    assert 'tidegate_fire_lateness_seconds_count{plane="run"} 1.0' in lines
    assert "tidegate_owned_shards 12.0" in lines


def test_given_two_processes_in_one_then_their_figures_are_apart() -> None:
    first, second = Metrics(), Metrics()

    first.count("tidegate_fenced_total")

    assert first.value("tidegate_fenced_total") == 1
    assert second.value("tidegate_fenced_total") == 0


def test_given_a_name_that_is_not_in_the_table_then_it_is_refused() -> None:
    with pytest.raises(KeyError):
        Metrics().count("tidegate_unheard_of_total")


def test_given_the_table_then_the_page_explains_every_metric() -> None:
    body, _ = Metrics().exposition()

    for name in METRICS:
        assert f"# HELP {name} " in body.decode()
