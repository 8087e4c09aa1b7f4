"""Budgets: how long a query may run, what it may hold and return, and how it is cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Self

from omnigraph.errors import CancelledError, ErrorCode, LimitExceededError
from omnigraph.model.arguments import misfit_error
from omnigraph.model.durations import format_duration
from omnigraph.model.query_limits import (
    QueryLimits,
    Timeout,
    require_max_rows,
    require_memory,
    require_timeout,
)
from omnigraph.model.sizes import format_size


class Cancellation:
    """Cancels the queries that it is given to, from any thread. It stays cancelled.

    >>> cancellation = Cancellation()
    >>> cancellation.cancel()
    >>> cancellation.is_cancelled
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._is_cancelled

    def cancel(self) -> None:
        """End every query that has this, and refuse every later one. Returns at once."""
        with self._lock:
            self._is_cancelled = True
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    @contextmanager
    def notify(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call the listener on cancellation, for as long as the block lasts; at once if it is."""
        with self._lock:
            self._listeners.append(listener)
        try:
            if self._is_cancelled:
                listener()
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)


class LimitSource(StrEnum):
    """Where a limit was set; the words are those of messages."""

    CALL = "given with the query"
    GRAPH = "set for the graph"
    SERVER = "of the server"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of a budget.

    Attributes:
        value: Seconds, bytes or rows.
        text: The value as people write it, such as `30s`.
    """

    value: float
    text: str
    source: LimitSource


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run of a query may spend; without limits, anything.

    What runs for long in Python calls `check` once for each block of rows or edges, and
    `require_bytes` before it holds more than before.

    >>> UNLIMITED.check()
    >>> Budget(rows=Limit(10, "10", LimitSource.CALL)).require_rows(10)

    Attributes:
        ends_at: When the time is up, by `time.monotonic`; None if it never is.
    """

    timeout: Limit | None = None
    memory: Limit | None = None
    rows: Limit | None = None
    cancellation: Cancellation | None = None
    ends_at: float | None = None

    @property
    def may_end_early(self) -> bool:
        """Whether `check` can ever raise."""
        return self.ends_at is not None or self.cancellation is not None

    @property
    def bytes_max(self) -> int | None:
        """The bytes that the query may hold at once; None if there is no limit."""
        return None if self.memory is None else int(self.memory.value)

    @property
    def rows_max(self) -> int | None:
        """The rows that the query may return; None if there is no limit."""
        return None if self.rows is None else int(self.rows.value)

    def seconds_left(self) -> float | None:
        """How much of the time is left, at least 0; None if there is no limit."""
        return None if self.ends_at is None else max(0.0, self.ends_at - time.monotonic())

    def check(self) -> None:
        """Refuse to go on if the query was cancelled, or its time is up.

        Raises:
            CancelledError: it was cancelled.
            LimitExceededError: the time is up.
        """
        if self.cancellation is not None and self.cancellation.is_cancelled:
            message = "the query was cancelled"
            raise CancelledError(message)
        if self.timeout is not None and self.seconds_left() == 0:
            message = f"the query ran for longer than {self.timeout.text}"
            raise _exceeded(message, _TIMEOUT, self.timeout)

    def require_bytes(self, byte_count: int) -> None:
        """Refuse to hold this many bytes at once, if that is more than the query may.

        Raises:
            LimitExceededError: it is more.
        """
        if not self.has_room(byte_count):
            raise self.memory_error()

    def has_room(self, byte_count: int) -> bool:
        """Whether the query may hold this many bytes at once."""
        return self.memory is None or byte_count <= self.memory.value

    def require_rows(self, row_count: int) -> None:
        """Refuse to return this many rows, if that is more than the query may.

        Raises:
            LimitExceededError: it is more.
        """
        if self.rows is not None and row_count > self.rows.value:
            message = f"the query has more than {self.rows.text} rows"
            raise _exceeded(message, _MAX_ROWS, self.rows)

    def memory_error(self) -> LimitExceededError:
        """The error of a query that needs more memory than it may hold."""
        assert self.memory is not None, "there is a limit to exceed"
        message = f"the query needs more memory than {self.memory.text}"
        return _exceeded(message, _MEMORY, self.memory)


UNLIMITED: Final = Budget()

_request: Final[ContextVar[Budget]] = ContextVar("request", default=UNLIMITED)


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Let all work of this thread during the block end early, as the budget says.

    For a server, whose requests run methods that take no cancellation of their own.
    """
    token = _request.set(budget)
    try:
        yield
    finally:
        _request.reset(token)


def checkpoint() -> None:
    """Refuse to go on if the request that this thread works for was cancelled, or its time is up.

    Work that takes long calls it between its pieces, where nothing is half done.

    Raises:
        CancelledError: it was cancelled.
        LimitExceededError: the time is up.
    """
    _request.get().check()


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """The limits that a caller gave with a query; those that it did not are the graph's.

    Attributes:
        given: The arguments that were given, as `parse` names them.
        started_at: When the time began, by `time.monotonic`.
    """

    limits: QueryLimits
    given: frozenset[str]
    cancellation: Cancellation | None
    started_at: float

    @classmethod
    def parse(
        cls,
        *,
        timeout: Timeout | None = None,
        memory: str | int | None = None,
        max_rows: str | int | None = None,
        cancel: Cancellation | None = None,
    ) -> Self:
        """Check what a caller gave; None is what it did not. The time begins now.

        Raises:
            InvalidParameterError: a limit has not its form, or is out of range.
        """
        given = {"timeout": timeout, "memory": memory, "max_rows": max_rows}
        limits = QueryLimits(
            None if timeout is None else require_timeout(timeout, "timeout"),
            None if memory is None else require_memory(memory, "memory"),
            None if max_rows is None else require_max_rows(max_rows, "max_rows"),
        )
        names = frozenset(name for name, value in given.items() if value is not None)
        cancellation = _require_cancellation(cancel) or _request.get().cancellation
        return cls(limits, names, cancellation, time.monotonic())

    @property
    def needs_defaults(self) -> bool:
        """Whether the caller left a limit to the graph."""
        return len(self.given) < len(_FORMATS)

    def budget(self, defaults: Callable[[], QueryLimits]) -> Budget:
        """The budget of these limits, and of the graph's where there are none.

        Args:
            defaults: Reads the graph's limits; called only where it matters.
        """
        graph = defaults() if self.needs_defaults else QueryLimits()
        timeout, memory, rows = (self._limit(name, graph) for name in _FORMATS)
        ends_at = None if timeout is None else self.started_at + timeout.value
        return Budget(timeout, memory, rows, self.cancellation, ends_at)

    def _limit(self, name: str, graph: QueryLimits) -> Limit | None:
        is_given = name in self.given
        value = getattr(self.limits if is_given else graph, name)
        if value is None:
            return None
        number = value.total_seconds() if isinstance(value, timedelta) else value
        source = LimitSource.CALL if is_given else LimitSource.GRAPH
        return Limit(number, _FORMATS[name](value), source)


def _require_cancellation(value: object) -> Cancellation | None:
    if value is None or isinstance(value, Cancellation):
        return value
    hint = "make one with omnigraph.Cancellation()"
    raise misfit_error(value, "cancel", "a Cancellation", hint=hint)


_FORMATS: Final[dict[str, Callable[[Any], str]]] = {
    "timeout": format_duration,
    "memory": format_size,
    "max_rows": "{:,}".format,
}


@dataclass(frozen=True, slots=True)
class _Kind:
    """The name of a limit as an argument, its code, and what to do without more of it."""

    name: str
    code: ErrorCode
    remedy: str


_TIMEOUT: Final = _Kind("timeout", ErrorCode.QUERY_TIMEOUT, "narrow the pattern")
_MEMORY: Final = _Kind("memory", ErrorCode.QUERY_MEMORY, "narrow the pattern, or use Spark")
_MAX_ROWS: Final = _Kind("max_rows", ErrorCode.QUERY_MAX_ROWS, "add a limit to the query")


def _exceeded(message: str, kind: _Kind, limit: Limit) -> LimitExceededError:
    option = f"--{kind.name.replace('_', '-')}"
    return LimitExceededError(
        f"{message}, the limit {kind.name} {limit.source}",
        hint=f"{kind.remedy}; or give it more with {option}, or {kind.name}= in Python",
        code=kind.code,
        limit=kind.name,
        value=limit.text,
        source=limit.source.name.lower(),
    )
