"""Admission: how many requests run at once, who waits for how long, and who is sent away."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import ErrorCode, LimitExceededError

_SECONDS_KEPT: Final = 0.2
"""The weight of the newest duration in their average."""

_ACTOR_SHARE: Final = 2
"""One actor may take at most one part in so many of what all actors share."""


@dataclass(frozen=True, slots=True)
class GateLimits:
    """How many may be inside at once, in all and for one actor, and how many may wait how long."""

    in_all: int
    per_actor: int
    waiting: int
    wait_seconds: float

    @property
    def waiting_per_actor(self) -> int:
        """How many of one actor may wait: never so many that no other actor can."""
        return -(-self.waiting // _ACTOR_SHARE)


class Place:
    """A place inside a gate, until the block of `enter` ends, or longer."""

    def __init__(self, actor: str | None, leave: Callable[[Place], None]) -> None:
        self.actor = actor
        self.begun_at = time.monotonic()
        self.is_kept = False
        self._leave = leave

    def keep(self) -> Callable[[], None]:
        """Keep the place beyond the block; what is returned leaves it, and has to be called."""
        self.is_kept = True
        return lambda: self._leave(self)


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    actor: str | None
    entered: asyncio.Future[Place]


class Gate:
    """Lets requests of one kind in. It belongs to one event loop, and needs no lock."""

    def __init__(self, kind: str, limits: GateLimits) -> None:
        self._kind = kind
        self._limits = limits
        self._places: set[Place] = set()
        self._inside: Counter[str | None] = Counter()
        # In the order of arrival.
        self._waiters: dict[_Waiter, None] = {}
        self._waiting: Counter[str | None] = Counter()
        self._seconds = 0.05

    @property
    def inside(self) -> int:
        """How many requests are inside."""
        return len(self._places)

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiters)

    @asynccontextmanager
    async def enter(self, actor: str | None) -> AsyncIterator[Place]:
        """Be inside for the block, after waiting if need be."""
        # Whoever waits could not enter: all is full, or all that its actor may have.
        place = self._take(actor) if self._has_room(actor) else await self._wait(actor)
        try:
            yield place
        finally:
            if not place.is_kept:
                self._leave(place)

    async def _wait(self, actor: str | None) -> Place:
        limits = self._limits
        if self.waiting >= limits.waiting:
            raise self._busy_error(actor, why=f"{self.waiting} {self._kind}s wait already")
        if self._waiting[actor] >= limits.waiting_per_actor:
            why = f"{self._waiting[actor]} {self._kind}s of this actor wait already"
            raise self._busy_error(actor, why=why)
        waiter = _Waiter(actor, asyncio.get_running_loop().create_future())
        self._waiters[waiter] = None
        self._waiting[actor] += 1
        try:
            return await asyncio.wait_for(asyncio.shield(waiter.entered), limits.wait_seconds)
        except TimeoutError:
            if waiter.entered.done():
                return waiter.entered.result()
            self._forget(waiter)
            why = f"it waited for {limits.wait_seconds:g} s"
            raise self._busy_error(actor, why=why) from None
        except asyncio.CancelledError:
            if waiter.entered.done():
                self._leave(waiter.entered.result())
            else:
                self._forget(waiter)
            raise

    def _take(self, actor: str | None) -> Place:
        place = Place(actor, self._leave)
        self._places.add(place)
        self._inside[actor] += 1
        return place

    def _leave(self, place: Place) -> None:
        self._places.remove(place)
        _lower(self._inside, place.actor)
        self._seconds += _SECONDS_KEPT * (time.monotonic() - place.begun_at - self._seconds)
        self._admit()

    def _forget(self, waiter: _Waiter) -> None:
        del self._waiters[waiter]
        _lower(self._waiting, waiter.actor)

    def _admit(self) -> None:
        """Let in whoever may enter: first who has the fewest inside, then who came first."""
        while self.inside < self._limits.in_all:
            able = [waiter for waiter in self._waiters if self._has_room(waiter.actor)]
            if not able:
                return
            waiter = min(able, key=lambda each: self._inside[each.actor])
            self._forget(waiter)
            waiter.entered.set_result(self._take(waiter.actor))

    def _has_room(self, actor: str | None) -> bool:
        limits = self._limits
        return self.inside < limits.in_all and self._inside[actor] < limits.per_actor

    def _busy_error(self, actor: str | None, *, why: str) -> LimitExceededError:
        message = f"the server is busy with {self.inside} {self._kind}s, and {why}"
        seconds = max(1.0, self._rounds_ahead(actor) * self._seconds_each())
        hint = f"try again in {seconds:.0f} s"
        return LimitExceededError(
            message, hint=hint, code=ErrorCode.TOO_BUSY, retry_after=round(seconds)
        )

    def _rounds_ahead(self, actor: str | None) -> float:
        """How often all places are taken before a new request of an actor would enter."""
        limits = self._limits
        in_all = (self.inside + self.waiting) / limits.in_all
        own = (self._inside[actor] + self._waiting[actor]) / limits.per_actor
        return max(in_all, own)

    def _seconds_each(self) -> float:
        """About how long a request is inside, by those that have left and by those that have not.

        Those that run for long have not left yet: their time so far counts, too.
        """
        now = time.monotonic()
        running = sum(now - place.begun_at for place in self._places) / max(1, len(self._places))
        return max(self._seconds, running)


def _lower(counter: Counter[str | None], actor: str | None) -> None:
    counter[actor] -= 1
    if not counter[actor]:
        del counter[actor]


class Outbox:
    """Counts the bytes of answers that clients have not received yet. For one event loop."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes: Counter[str | None] = Counter()

    @property
    def unsent_bytes(self) -> int:
        """The bytes of all answers on their way."""
        return self._bytes.total()

    def put(self, actor: str | None, size: int) -> Callable[[], None] | None:
        """Count an answer until the function is called that is returned; None if it is too much."""
        own = self._bytes[actor] + size
        if own * _ACTOR_SHARE > self._bytes_max or self.unsent_bytes + size > self._bytes_max:
            return None
        self._bytes[actor] = own
        return lambda: self._remove(actor, size)

    def _remove(self, actor: str | None, size: int) -> None:
        self._bytes[actor] -= size
        if not self._bytes[actor]:
            del self._bytes[actor]
