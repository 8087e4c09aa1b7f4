"""Requests to providers: JSON over HTTP, with retries, a rate limit and one deadline for all."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from omnigraph.clock import Clock
from omnigraph.embedding.providers.keys import KeyName
from omnigraph.errors import EmbeddingError, ErrorCode

_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_ATTEMPTS_MAX: Final = 8
_BACKOFF_SECONDS: Final = 0.5
_BACKOFF_SECONDS_MAX: Final = 30.0
_ANSWER_BYTES_MAX: Final = 256 << 20
_SHOWN_CHARACTERS_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a provider may take.

    Attributes:
        timeout_seconds: For one request.
        deadline_seconds: For everything that one run asks for, with all retries.
        requests_per_minute: At most so many; 0 for no limit.
    """

    timeout_seconds: float = 60.0
    deadline_seconds: float = 600.0
    requests_per_minute: int = 0


@dataclass(slots=True)
class ProviderEndpoint:
    """Where a provider takes requests, and how many it has had of this process.

    Attributes:
        url: The base address.
        key: The variable with its key; None if it takes none.
        key_header: The header with the key, and what stands before it there.
    """

    model: str
    url: str
    key: KeyName | None
    key_header: tuple[str, str]
    clock: Clock
    patience: Patience = field(default_factory=Patience)
    _ends: datetime | None = None
    _next: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """The answer to a request, as JSON."""
        data = json.dumps(body).encode()
        if self._ends is None:
            self._ends = self.clock.now() + timedelta(seconds=self.patience.deadline_seconds)
        failure = ""
        for attempt in range(_ATTEMPTS_MAX):
            self._wait_for_turn()
            wait = min(_BACKOFF_SECONDS_MAX, _BACKOFF_SECONDS * 2**attempt) * (
                0.5 + self.clock.random() / 2
            )
            try:
                status, retry_after, answer = self._send(path, data)
            except (OSError, HTTPException) as cause:
                # Only the kind of failure: a message may quote what was sent.
                failure = f"{type(cause).__name__} at {self._place}"
            else:
                if status == 200:
                    return self._decode(answer)
                failure = f"status {status} from {self._place}{self._quote(answer)}"
                if status not in _RETRIED:
                    raise self._error(failure, _hint_for(status))
                wait = wait if retry_after is None else max(wait, retry_after)
            self._pause(wait, failure)
        failure = f"{failure}, {_ATTEMPTS_MAX} times"
        raise self._error(failure, "try again later")

    def _send(self, path: str, data: bytes) -> tuple[int, float | None, bytes]:
        parts = urlsplit(self.url)
        is_plain = parts.scheme == "http"
        seconds = min(self.patience.timeout_seconds, max(0.1, self._remaining()))
        kind = HTTPConnection if is_plain else HTTPSConnection
        connection = kind(parts.hostname or "", parts.port, timeout=seconds)
        try:
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            if self.key is not None:
                name, before = self.key_header
                headers[name] = f"{before}{self.key.read(self.model)}"
            connection.request("POST", f"{parts.path.rstrip('/')}{path}", data, headers)
            response = connection.getresponse()
            answer = response.read(_ANSWER_BYTES_MAX)
            return response.status, self._retry_after(response), answer
        finally:
            connection.close()

    def _retry_after(self, response: HTTPResponse) -> float | None:
        """How many seconds the provider wants us to wait, if it says so."""
        value = response.getheader("Retry-After")
        if value is None:
            return None
        try:
            return max(0.0, float(value))
        except ValueError:
            pass
        try:
            then = parsedate_to_datetime(value)
            return max(0.0, (then - self.clock.now()).total_seconds())
        except (ValueError, TypeError):
            return None

    def _decode(self, answer: bytes) -> Any:
        try:
            return json.loads(answer)
        except ValueError as cause:
            failure = f"an answer from {self._place} that is not JSON"
            raise self._error(failure, "is the address that of a provider?") from cause

    def _wait_for_turn(self) -> None:
        """Space requests evenly, those of other threads included."""
        if not self.patience.requests_per_minute:
            return
        with self._lock:
            now = self.clock.now()
            turn = max(now, self._next or now)
            self._next = turn + timedelta(seconds=60 / self.patience.requests_per_minute)
        self._pause((turn - now).total_seconds(), "the rate limit")

    def _pause(self, seconds: float, why: str) -> None:
        if seconds > self._remaining():
            limit = self.patience.deadline_seconds
            failure = f"no answer within the {limit:g} seconds of embedding.deadline: {why}"
            hint = "run it again: what was committed stays; or raise embedding.deadline"
            raise self._error(failure, hint)
        if seconds > 0:
            self.clock.sleep(seconds)

    def _remaining(self) -> float:
        assert self._ends is not None, "post sets it"
        return (self._ends - self.clock.now()).total_seconds()

    @property
    def _place(self) -> str:
        parts = urlsplit(self.url)
        port = "" if parts.port is None else f":{parts.port}"
        return f"{parts.hostname}{port}"

    def _quote(self, answer: bytes) -> str:
        """What the provider says about a refusal, unless it quotes the key."""
        text = " ".join(answer.decode(errors="replace").split())[:_SHOWN_CHARACTERS_MAX]
        if self.key is not None:
            key = self.key.read(self.model)
            # Providers quote the ends of a wrong key, so any piece of it hides the whole answer.
            pieces = {key[start : start + 4] for start in range(max(1, len(key) - 3))}
            if any(piece in text for piece in pieces):
                return ""
        return f": {text}" if text else ""

    def _error(self, failure: str, hint: str) -> EmbeddingError:
        message = f"{self.model} could not embed: {failure}"
        return EmbeddingError(message, hint=hint, code=ErrorCode.EMBEDDING_PROVIDER)


def _hint_for(status: int) -> str:
    if status in (401, 403):
        return "check the key of the provider"
    if status == 404:
        return "check the name of the model and the address of the provider"
    return "the provider refuses the request; nothing was written"
