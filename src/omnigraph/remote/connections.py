"""Connections: requests with a token, repeated where that is safe, and errors as they were raised.

What is not sent, or answered by "too busy", is repeated in any case: nothing was done. A request
whose answer is lost is repeated if it only reads, or if it has a key and so lands once. Of any
other, whether it landed is unknown, and the error says so.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from omnigraph import __version__
from omnigraph.documents.failures import from_problem
from omnigraph.documents.operations import CallKind
from omnigraph.documents.results import MEDIA_TYPE
from omnigraph.engine.budget import Cancellation
from omnigraph.errors import (
    CancelledError,
    ErrorCode,
    InvalidInputError,
    OmnigraphError,
    OutcomeUnknownError,
    StorageError,
)
from omnigraph.remote.addresses import Address
from omnigraph.remote.bodies import read_body

REMOTE_CONNECT_SECONDS: Final = 10.0
"""How long a client waits for a server to accept its connection."""

REMOTE_BACKOFF_SECONDS: Final = 0.1
REMOTE_BACKOFF_SECONDS_MAX: Final = 5.0
"""How long a client waits before it repeats a request: the first time, and at most."""


_PROBLEM: Final = "application/problem+json"
_UNANSWERED: Final = frozenset({408, 500, 502, 503, 504})
"""What proxies answer when the server behind them did not, or not in time."""

_REFUSED: Final = frozenset({429})
"""What proxies answer without asking the server."""


class _Bearer(httpx.Auth):
    """Adds the token to requests; it is in no representation of anything."""

    def __init__(self, token: str) -> None:
        self._header = f"Bearer {token}"

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["Authorization"] = self._header
        yield request


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How long to wait.

    Attributes:
        answer_seconds: For the answer to one request, or its next piece.
        retry_seconds: How long after the first attempt another one may begin; 0 repeats nothing.
    """

    answer_seconds: float = 300.0
    retry_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Sending:
    """One request.

    Attributes:
        content: The body; called for each attempt, since a stream can be read once.
        key: Names it for a day, so that it lands once.
    """

    method: str
    path: str
    kind: CallKind
    content: Callable[[], bytes | Iterator[bytes]] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    cancel: Cancellation | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether an answer that is lost may be asked for again."""
        return self.kind is CallKind.READ or self.key is not None


class Connection:
    """Requests to one served graph. Safe to share between threads."""

    def __init__(
        self,
        address: Address,
        token: str | None,
        limits: WaitLimits,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.address = address
        self._auth = None if token is None else _Bearer(token)
        self._limits = limits
        self._transport = transport
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self.has_written = False
        """Whether a request that changes something was answered by success."""

    def close(self) -> None:
        """Close what is open. The next request opens it again."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def send(self, sending: Sending) -> bytes | memoryview:
        """Send a request, and return the body of its answer."""
        seconds_max = self._limits.answer_seconds
        body: bytes | memoryview = self._repeat(
            sending, lambda response: read_body(response, seconds_max=seconds_max)
        )
        return body

    @contextmanager
    def stream(self, sending: Sending) -> Iterator[Iterator[bytes]]:
        """Send a request, and return the pieces of its answer as they arrive."""
        response = self._repeat(sending, lambda response: response)
        try:
            with _translate_losses(self.address):
                yield response.iter_bytes()
        finally:
            response.close()

    def _repeat(self, sending: Sending, take: Callable[[httpx.Response], Any]) -> Any:
        begun, attempt, is_lost = time.monotonic(), 0, False
        while True:
            try:
                return self._attempt(sending, take)
            except _Again as again:
                is_lost |= again.is_lost
                pause = max(again.seconds, _backoff(attempt))
                is_over = time.monotonic() - begun + pause > self._limits.retry_seconds
                if is_over or not _wait(pause, sending.cancel):
                    failure = again.failure if is_over else _cancelled_error()
                    raise _final(sending, failure, is_lost=is_lost) from again.__cause__
            except CancelledError as cancelled:
                raise _final(sending, cancelled, is_lost=is_lost) from cancelled.__cause__
            attempt += 1

    def _attempt(self, sending: Sending, take: Callable[[httpx.Response], Any]) -> Any:
        with self._client_for(sending) as (client, extensions):
            request = client.build_request(
                sending.method,
                f"{self.address}/{sending.path}",
                content=None if sending.content is None else sending.content(),
                headers=self._headers(sending),
                extensions=extensions,
            )
            try:
                response = client.send(request, auth=self._auth, stream=True)
                if response.status_code >= 300:
                    response.read()
                    response.close()
                    raise self._refusal(sending, response)
                taken = take(response)
            except httpx.TransportError as cause:
                raise self._loss(sending, cause) from cause
            self.has_written |= sending.kind is not CallKind.READ
            return taken

    def _headers(self, sending: Sending) -> dict[str, str]:
        headers = {
            "Accept": f"{MEDIA_TYPE}, {_PROBLEM}",
            "User-Agent": f"omnigraph/{__version__}",
            **sending.headers,
        }
        if sending.key is not None:
            headers["Idempotency-Key"] = sending.key
        return headers

    def _loss(self, sending: Sending, cause: httpx.TransportError) -> BaseException:
        """What to raise when a request was not sent, or its answer was lost."""
        where = f"the server {self.address.server}"
        reason = str(cause) or type(cause).__name__
        is_unsent = isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        if sending.cancel is not None and sending.cancel.is_cancelled:
            # A server ends a write that has begun, whether its client stays or leaves.
            return _final(sending, _cancelled_error(), is_lost=not is_unsent)
        if is_unsent:
            message = f"{where} cannot be reached: {reason}"
            hint = "check the address, and whether the server runs"
            return _Again(StorageError(message, hint=hint))
        message = f"the connection to {where} broke: {reason}"
        is_late = isinstance(cause, httpx.ReadTimeout)
        if is_late:
            message = f"{where} did not answer within {self._limits.answer_seconds:g} s"
        failure = StorageError(message, hint="try again, or wait longer: timeout=")
        # Waiting once more for what took too long would take as long again.
        if is_late or not sending.is_repeatable:
            return _final(sending, failure, is_lost=True)
        return _Again(failure, is_lost=True)

    def _refusal(self, sending: Sending, response: httpx.Response) -> BaseException:
        """What to raise when the server, or a proxy before it, refused a request."""
        status = response.status_code
        problem = _problem_of(response)
        if problem is None:
            failure = self._strange_answer(response)
            if status in _REFUSED:
                return _Again(failure, _retry_after(response) or 0.0)
            if status not in _UNANSWERED:
                return failure
            if not sending.is_repeatable:
                return _final(sending, failure, is_lost=True)
            return _Again(failure, _retry_after(response) or 0.0, is_lost=True)
        error = from_problem(problem)
        seconds = _retry_after(response)
        if isinstance(error, CancelledError) and sending.kind is CallKind.READ:
            # Nobody here cancelled it: the server stops.
            return _Again(error, seconds or 0.0)
        if error.code is ErrorCode.REQUEST_TAKEN:
            return _Again(error)
        # Nothing was done where the server had no room, or was about to stop.
        undone = error.code is ErrorCode.TOO_BUSY or "retry_after" in error.details
        if seconds is not None and (undone or sending.is_repeatable):
            return _Again(error, seconds)
        return error

    def _strange_answer(self, response: httpx.Response) -> OmnigraphError:
        status = response.status_code
        message = f"{self.address.server} answers {status} {response.reason_phrase}"
        if status in _UNANSWERED | _REFUSED:
            return StorageError(
                message, hint="the proxy before the server answers so: ask who runs it"
            )
        if 300 <= status < 400:
            hint = "give the address that it points to: a token is not sent on"
        else:
            hint = "check whether a server of graphs has this address"
        return InvalidInputError(f"{message}, and no graph", hint=hint, code=ErrorCode.INVALID_URI)

    @contextmanager
    def _client_for(self, sending: Sending) -> Iterator[tuple[httpx.Client, dict[str, Any]]]:
        """The client for a request; one of its own if it can be cancelled."""
        if sending.cancel is None:
            yield self._shared(), {}
            return
        socket_of = _OpenSocket()
        with (
            self._new_client() as client,
            sending.cancel.notify(socket_of.shut),
        ):
            if sending.cancel.is_cancelled:
                raise _cancelled_error()
            yield client, {"trace": socket_of.trace}

    def _shared(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                self._client = self._new_client()
            return self._client

    def _new_client(self) -> httpx.Client:
        seconds = self._limits.answer_seconds
        return httpx.Client(
            timeout=httpx.Timeout(seconds, connect=REMOTE_CONNECT_SECONDS),
            transport=self._transport,
            follow_redirects=False,
            # What is not encrypted stays on this machine, whatever proxy the environment names.
            trust_env=self.address.is_encrypted,
        )

    def __reduce__(self) -> Any:
        message = "a connection cannot be pickled: it has a token"
        raise TypeError(message)


class _Again(Exception):  # no error: it ends in another attempt, or in its failure
    """A request may be sent again.

    Attributes:
        seconds: Not sooner than after so many.
        is_lost: Whether it may have been carried out.
    """

    def __init__(
        self, failure: OmnigraphError, seconds: float = 0.0, *, is_lost: bool = False
    ) -> None:
        super().__init__()
        self.failure = failure
        self.seconds = seconds
        self.is_lost = is_lost


class _OpenSocket:
    """The socket of a request, which whoever cancels it shuts: the server sees the client leave."""

    def __init__(self) -> None:
        self._stream: Any = None
        self._is_shut = False

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Note the streams that the client opens."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._stream = info["return_value"]
            if self._is_shut:
                self.shut()

    def shut(self) -> None:
        """End the request, in whichever thread it waits."""
        self._is_shut = True
        found = None if self._stream is None else self._stream.get_extra_info("socket")
        if found is not None:
            with suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)


@contextmanager
def _translate_losses(address: Address) -> Iterator[None]:
    try:
        yield
    except httpx.TransportError as cause:
        message = f"the connection to the server {address.server} broke: {cause}"
        raise StorageError(message, hint="read it again") from cause


def _problem_of(response: httpx.Response) -> dict[str, Any] | None:
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind != _PROBLEM:
        return None
    try:
        problem = json.loads(response.content)
    except ValueError:
        return None
    return problem if isinstance(problem, dict) else None


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _backoff(attempt: int) -> float:
    most: float = min(REMOTE_BACKOFF_SECONDS_MAX, REMOTE_BACKOFF_SECONDS * 2**attempt)
    # Clients that a restart cut off at once do not return at once.
    return most * (0.5 + random.random() / 2)


def _wait(seconds: float, cancel: Cancellation | None) -> bool:
    """Wait, and return whether nobody cancelled the request meanwhile."""
    if cancel is None:
        time.sleep(seconds)
        return True
    over = threading.Event()
    with cancel.notify(over.set):
        return not over.wait(seconds)


def _final(sending: Sending, failure: OmnigraphError, *, is_lost: bool) -> OmnigraphError:
    """What to raise in the end: of a write that may have landed, that this is unknown."""
    if not is_lost or sending.kind is CallKind.READ:
        return failure
    message = f"{failure.message}: whether the request landed is unknown"
    if sending.key is not None:
        hint = f"repeat it with the same key, by which it lands once: key={sending.key!r}"
        return OutcomeUnknownError(message, hint=hint, key=sending.key)
    return OutcomeUnknownError(message, hint="look at the newest commits before you repeat it")


def _cancelled_error() -> CancelledError:
    message = "the query was cancelled"
    return CancelledError(message)
