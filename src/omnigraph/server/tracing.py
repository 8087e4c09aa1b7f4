"""Traces: one span for each request, where OpenTelemetry is installed; else nothing.

The package `opentelemetry-api` makes spans that go nowhere until the process has an SDK, as under
`opentelemetry-instrument omnigraph serve`. A request that is part of a trace continues it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

_TRACER: Final = "omnigraph.server"


class RequestSpan:
    """What is noted of a request while it is answered; it may go nowhere."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def note(self, **facts: str | int | None) -> None:
        """Note facts by their names, in which `__` stands for a dot."""
        if self._span is None:
            return
        for name, fact in facts.items():
            if fact is not None:
                self._span.set_attribute(name.replace("__", "."), fact)

    def rename(self, name: str) -> None:
        """Name the request by its route, once that is known."""
        if self._span is not None:
            self._span.update_name(name)


class Tracing:
    """Makes the spans of a server."""

    def __init__(self) -> None:
        self._is_installed = find_spec("opentelemetry") is not None

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[RequestSpan]:
        """A span for one request, below the one that its `traceparent` names."""
        if not self._is_installed:
            yield RequestSpan()
            return
        from opentelemetry import propagate, trace

        tracer = trace.get_tracer(_TRACER)
        with tracer.start_as_current_span(
            method, context=propagate.extract(headers), kind=trace.SpanKind.SERVER
        ) as span:
            yield RequestSpan(span)
