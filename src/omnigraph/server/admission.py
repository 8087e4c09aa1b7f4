"""Admission: how many requests run at once, who waits for how long, and who is sent away."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import ErrorCode, LimitExceededError

_SECONDS_KEPT: Final = 0.2
"""The weight of the newest duration in their average."""


@dataclass(frozen=True, slots=True)
class GateLimits:
    """How many may be inside at once, in all and for one actor, and how many may wait how long."""

    in_all: int
    per_actor: int
    waiting: int
    wait_seconds: float


class Gate:
    """Lets requests of one kind in. It belongs to one event loop, and needs no lock."""

    def __init__(self, kind: str, limits: GateLimits) -> None:
        self._kind = kind
        self._limits = limits
        self._inside: Counter[str | None] = Counter()
        self._waiting: deque[tuple[str | None, asyncio.Future[None]]] = deque()
        self._seconds = 0.05

    @property
    def inside(self) -> int:
        """How many requests are inside."""
        return self._inside.total()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def enter(self, actor: str | None) -> AsyncIterator[None]:
        """Be inside for the block, after waiting if need be.

        Raises:
            LimitExceededError: too many wait, or it took too long. Nothing was done.
        """
        if self._waiting or not self._has_room(actor):
            await self._wait(actor)
        else:
            self._inside[actor] += 1
        begun = time.monotonic()
        try:
            yield
        finally:
            self._seconds += _SECONDS_KEPT * (time.monotonic() - begun - self._seconds)
            self._leave(actor)

    async def _wait(self, actor: str | None) -> None:
        if len(self._waiting) >= self._limits.waiting:
            why = f"{len(self._waiting)} {self._kind}s wait already"
            raise self._busy_error(why)
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (actor, entered)
        self._waiting.append(place)
        # It may be first in line of its actor, though others wait.
        self._admit()
        try:
            await asyncio.wait_for(asyncio.shield(entered), self._limits.wait_seconds)
        except TimeoutError:
            if entered.done():
                return
            self._waiting.remove(place)
            seconds = self._limits.wait_seconds
            why = f"it waited for {seconds:g} s"
            raise self._busy_error(why) from None
        except asyncio.CancelledError:
            if entered.done():
                self._leave(actor)
            else:
                self._waiting.remove(place)
            raise

    def _leave(self, actor: str | None) -> None:
        self._inside[actor] -= 1
        if not self._inside[actor]:
            del self._inside[actor]
        self._admit()

    def _admit(self) -> None:
        """Let in whoever may enter, in the order of arrival; a busy actor lets others pass."""
        for place in tuple(self._waiting):
            actor, entered = place
            if self.inside >= self._limits.in_all:
                return
            if self._has_room(actor):
                self._waiting.remove(place)
                self._inside[actor] += 1
                entered.set_result(None)

    def _has_room(self, actor: str | None) -> bool:
        limits = self._limits
        return self.inside < limits.in_all and self._inside[actor] < limits.per_actor

    def _busy_error(self, why: str) -> LimitExceededError:
        message = f"the server is busy with {self.inside} {self._kind}s, and {why}"
        # What is inside and waits before a new request would enter.
        ahead = (self.inside + len(self._waiting)) / self._limits.in_all
        seconds = max(1.0, ahead * self._seconds)
        hint = f"try again in {seconds:.0f} s"
        return LimitExceededError(
            message, hint=hint, code=ErrorCode.TOO_BUSY, retry_after=round(seconds)
        )
