"""Traces of requests, through the interface of OpenTelemetry; its SDK is not needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace

from omnigraph.server.tracing import Tracing


class Recorded(trace.NonRecordingSpan):
    """A span that keeps what is noted."""

    def __init__(self, name: str, parent: trace.SpanContext) -> None:
        super().__init__(parent)
        self.name = name
        self.facts: dict[str, Any] = {}

    def set_attribute(self, key: str, value: Any) -> None:
        self.facts[key] = value

    def update_name(self, name: str) -> None:
        self.name = name


class Tracer(trace.NoOpTracer):
    """Keeps its spans."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    @contextmanager
    def start_as_current_span(  # type: ignore[override]
        self, name: str, context: Any = None, **_: Any
    ) -> Iterator[Recorded]:
        span = Recorded(name, trace.get_current_span(context).get_span_context())
        self.spans.append(span)
        yield span


def test_a_request_continues_its_trace_and_notes_how_it_was_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracer = Tracer()
    monkeypatch.setattr(trace, "get_tracer", lambda *_: tracer)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    with Tracing().request("GET", {"traceparent": parent}) as span:
        span.rename("GET /graphs/{graph}/branches")
        span.note(http__response__status_code=200, enduser__id=None)

    [kept] = tracer.spans
    assert kept.name == "GET /graphs/{graph}/branches"
    assert kept.facts == {"http.response.status_code": 200}
    assert f"{kept.get_span_context().trace_id:032x}" == parent[3:35]


def test_without_opentelemetry_nothing_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.server.tracing.find_spec", lambda _: None)

    with Tracing().request("GET", {}) as span:
        span.rename("anything")
        span.note(http__route="/x")
