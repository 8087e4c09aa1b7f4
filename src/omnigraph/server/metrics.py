"""Counters of a server, for Prometheus: a registry of their own for each service."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    """What is counted of requests."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "omnigraph_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "omnigraph_request_seconds",
            "Seconds until the answer began, by route and method.",
            ("route", "method"),
            registry=self.registry,
        )
        self.running = Gauge(
            "omnigraph_running", "Requests that run, by kind.", ("kind",), registry=self.registry
        )
        self.waiting = Gauge(
            "omnigraph_waiting", "Requests that wait, by kind.", ("kind",), registry=self.registry
        )

        self.unsent_bytes = Gauge(
            "omnigraph_unsent_bytes",
            "Bytes of answers that clients have not received.",
            registry=self.registry,
        )

    def text(self) -> bytes:
        """All counters in the format that Prometheus reads."""
        return generate_latest(self.registry)
