"""The clock: the source of time and fresh ids, injectable so that tests control both."""

from __future__ import annotations

import re
import secrets
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_DIGITS: Final = 10
_RANDOM_BITS: Final = 80
_STEP_BITS: Final = 64
_BACKOFF_SECONDS: Final = 0.005
ULID_LENGTH: Final = 26
_ULID: Final = re.compile(f"[0-7][{_CROCKFORD}]{{{ULID_LENGTH - 1}}}")


class Clock(Protocol):
    """The only source of time, waiting and new ids."""

    def now(self) -> datetime:
        """The current time, UTC, with microseconds."""
        ...

    def ulid(self) -> str:
        """A fresh id that sorts after every id this clock gave before."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass."""
        ...

    def random(self) -> float:
        """A number from 0 up to, not including, 1: for jitter."""
        ...


class SystemClock:
    """The machine's own clock."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The current time, UTC, with microseconds."""
        return datetime.now(UTC)

    def ulid(self) -> str:
        """A fresh id that sorts after every id this clock gave before."""
        fresh = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        with self._lock:
            # Within one millisecond, or when the machine's clock steps back, continue from the last
            # id. The step is random so that two processes forked from this one do not collide.
            self._last = max(fresh, self._last + 1 + secrets.randbits(_STEP_BITS))
            return encode_ulid(self._last)

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass."""
        time.sleep(seconds)

    def random(self) -> float:
        """A number from 0 up to, not including, 1: for jitter."""
        return secrets.randbits(53) / (1 << 53)


def back_off(clock: Clock, attempt: int, *, seconds_max: float) -> None:
    """Sleep a random time whose range doubles with each attempt, so that rivals separate."""
    clock.sleep(clock.random() * min(seconds_max, _BACKOFF_SECONDS * 2**attempt))


def encode_ulid(value: int) -> str:
    """Format a 128-bit number in Crockford's base 32, most significant digit first.

    >>> encode_ulid(0)
    '00000000000000000000000000'
    >>> encode_ulid((1 << 128) - 1)
    '7ZZZZZZZZZZZZZZZZZZZZZZZZZ'
    """
    digits = [_CROCKFORD[value >> shift & 31] for shift in range(5 * (ULID_LENGTH - 1), -1, -5)]
    return "".join(digits)


def creation_time(ulid: str) -> datetime:
    """When an id was minted.

    >>> creation_time("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    datetime.datetime(2016, 7, 30, 23, 54, 10, 259000, tzinfo=datetime.timezone.utc)
    """
    milliseconds = 0
    for digit in ulid[:_TIME_DIGITS]:
        milliseconds = milliseconds * len(_CROCKFORD) + _CROCKFORD.index(digit)
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


def is_ulid(text: str) -> bool:
    """Whether `text` has the form that `encode_ulid` returns.

    >>> is_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAV"), is_ulid("main"), is_ulid("8" * 26)
    (True, False, False)
    """
    return _ULID.fullmatch(text) is not None
