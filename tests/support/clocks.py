"""Clocks for tests: one that is ahead of the machine's, and one that only sleeping advances."""

from datetime import UTC, datetime, timedelta

from omnigraph.clock import SystemClock, encode_ulid


class LaterClock(SystemClock):
    """The machine's clock, set ahead, so that every current lease has expired."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._ahead = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return super().now() + self._ahead


class FakeClock:
    """A clock that only `sleep` advances, without waiting."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.time = start
        self.slept: list[float] = []
        self._ids = int(start.timestamp()) << 80

    def now(self) -> datetime:
        return self.time

    def ulid(self) -> str:
        self._ids += 1
        return encode_ulid(self._ids)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += timedelta(seconds=seconds)

    def random(self) -> float:
        return 0.5
