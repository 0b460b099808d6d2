"""Metrics of the API process; one registry per app, so that tests and several apps in one process do not meet."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

LATENCY_BUCKETS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters and histograms; labels are closed sets, never ids."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "tidegate_api_requests", "Answered HTTP requests", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "tidegate_api_request_seconds",
            "Time to the answer",
            ("method", "route"),
            buckets=LATENCY_BUCKETS_S,
            registry=self.registry,
        )
        self.gate = Counter(
            "tidegate_gate_answers",
            "Answers of the start gate and of reports",
            ("action", "answer"),
            registry=self.registry,
        )
        self.receipt_seconds = Histogram(
            "tidegate_api_receipt_seconds",
            "Time from a request's arrival to its receipt",
            ("status",),
            buckets=LATENCY_BUCKETS_S,
            registry=self.registry,
        )
        self.pokes = Counter(
            "tidegate_api_pokes",
            "Pokes to shard owners; a lost one costs latency only",
            ("outcome",),
            registry=self.registry,
        )
