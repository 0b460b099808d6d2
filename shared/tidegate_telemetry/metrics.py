"""Metrics of `metric_names.py` in the process's own registry. Names and labels are checked when they are used."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from tidegate_telemetry.metric_names import METRICS, Metric


class Metrics:
    """All metrics of one process; any thread.

    Args:
        table: Metrics of this process. A gauge that it never sets would show 0 as if it had been measured.
    """

    def __init__(self, table: Mapping[str, Metric] = METRICS) -> None:
        # Not the library's global registry: tests run several nodes in one process, each with its own figures.
        self.registry = CollectorRegistry()
        # No second series with each counter's creation time: it would double the size for figures without use.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library forgot to annotate it
        self._made = {name: _make(name, metric, self.registry) for name, metric in table.items()}

    def count(self, name: str, by: float = 1, /, **labels: str) -> None:
        """Adds to a counter."""
        counter = self._made[name]
        assert isinstance(counter, Counter), name
        (counter.labels(**labels) if labels else counter).inc(by)

    def observe(self, name: str, value: float, times: int = 1, /, **labels: str) -> None:
        """Adds an observation to a histogram, `times` times."""
        histogram = self._made[name]
        assert isinstance(histogram, Histogram), name
        series = histogram.labels(**labels) if labels else histogram
        for _ in range(times):
            series.observe(value)

    def set(self, name: str, value: float, /, **labels: str) -> None:
        """Sets a gauge."""
        gauge = self._made[name]
        assert isinstance(gauge, Gauge), name
        (gauge.labels(**labels) if labels else gauge).set(value)

    def value(self, name: str, /, **labels: str) -> float:
        """Returns the value of a counter or gauge; for a histogram, name its `_count` or `_sum`. For tests and
        health.
        """
        return self.registry.get_sample_value(name, labels) or 0.0

    def exposition(self) -> tuple[bytes, str]:
        """Returns body and content type of `/metrics`."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST


def _make(name: str, metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    match metric.kind:
        case "counter":
            return Counter(name, metric.help, metric.labels, registry=registry)
        case "gauge":
            return Gauge(name, metric.help, metric.labels, registry=registry)
        case "histogram":
            return Histogram(name, metric.help, metric.labels, buckets=metric.buckets, registry=registry)
