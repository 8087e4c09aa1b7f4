"""Connections: how many there may be, and how long a client may take to send and to receive.

uvicorn bounds neither the time of a request's headers nor that of a client that reads nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from omnigraph.server.settings import LimitSection, ServerSettings

_LAST_ANSWER_SECONDS: Final = 0.5
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


def bound_connections(settings: ServerSettings) -> type[asyncio.Protocol]:
    """The protocol of connections with the limits of these settings."""
    limits = {"limits": settings.limits, "stop_seconds": settings.stop_seconds}
    return type("BoundConnection", (ServerConnection,), limits)


class ServerConnection(H11Protocol):
    """One connection, which is closed if it is one too many, or its client too slow."""

    limits: LimitSection
    stop_seconds: float

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._headers_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or refuse it."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.write(_FULL)
            transport.close()
            return
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Receive some of a request."""
        super().data_received(data)
        self._await_headers()

    def on_response_complete(self) -> None:
        """Wait for the next request, of which some may be here already."""
        super().on_response_complete()
        if self.conn.trailing_data[0] or self.conn.their_state is h11.SEND_BODY:
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        for timer in (self._headers_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End the connection with its answer, or when the time to stop is over."""
        super().shutdown()
        # Later than requests that last too long are answered.
        self.loop.call_later(self.stop_seconds + _LAST_ANSWER_SECONDS, self.transport.abort)

    def _await_headers(self) -> None:
        """Close the connection later, unless the headers of a request are complete by then.

        Also if the rest of a body does not come that was answered before it was whole.
        """
        state = self.conn.their_state
        is_rest = state is h11.SEND_BODY and self.cycle.response_complete
        waits = state is h11.IDLE or is_rest
        if waits and self._headers_timer is None:
            seconds = self.limits.header_seconds
            self._headers_timer = self.loop.call_later(seconds, self.transport.close)
        elif not waits and self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def pause_writing(self) -> None:
        """Wait until the client has received some of what was sent."""
        super().pause_writing()
        self._unsent = self.transport.get_write_buffer_size()
        self._await_progress()

    def resume_writing(self) -> None:
        """Send more."""
        super().resume_writing()
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _await_progress(self) -> None:
        self._send_timer = self.loop.call_later(self.limits.send_seconds, self._check_progress)

    def _check_progress(self) -> None:
        """End the connection if its client has received nothing since the last time."""
        unsent = self.transport.get_write_buffer_size()
        if unsent >= self._unsent:
            self.transport.abort()
            return
        self._unsent = unsent
        self._await_progress()
