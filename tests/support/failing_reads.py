"""Failing reads: fails one of the calls with which `storage` reads from Lance or obstore."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import lance
import obstore
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceScanner

CALLS: Final[tuple[tuple[object, str], ...]] = (
    (lance, "dataset"),
    (LanceDataset, "checkout_version"),
    (LanceDataset, "count_rows"),
    (LanceDataset, "create_index_uncommitted"),
    (LanceDataset, "describe_indices"),
    (LanceDataset, "read_transaction"),
    (LanceDataset, "take"),
    (LanceScanner, "to_batches"),
    (LanceScanner, "to_reader"),
    (obstore, "get"),
    (obstore, "head"),
    (obstore, "list"),
)
PLANTED: Final = "planted: the disk does not answer"


@dataclass(slots=True)
class Reads:
    """Counts reads, and fails one of them.

    Attributes:
        nth: The read to fail, counted from one; none if zero.
        seen: How many there were.
        failed: The name of the call that was failed.
    """

    nth: int = 0
    seen: int = 0
    failed: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def failing(self, nth: int) -> Iterator[None]:
        self.nth, self.seen, self.failed = nth, 0, ""
        try:
            yield
        finally:
            self.nth = 0

    def count(self, name: str) -> None:
        with self.lock:
            self.seen += 1
            if self.seen != self.nth:
                return
            self.failed = name
        raise OSError(PLANTED)

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting_call(*arguments: Any, **options: Any) -> Any:
            self.count(name)
            answer = call(*arguments, **options)
            # A stream may also fail later, while it is read.
            if isinstance(answer, pa.RecordBatchReader):
                return pa.RecordBatchReader.from_batches(answer.schema, self._count_batches(answer))
            return self._count_batches(answer) if name == "to_batches" else answer

        return counting_call

    def _count_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.count("a batch of a stream")
            yield batch


def count_reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Count every read of this process for the rest of a test."""
    reads = Reads()
    for owner, name in CALLS:
        monkeypatch.setattr(owner, name, reads.wrap(name, getattr(owner, name)))
    latest = LanceDataset.latest_version

    def latest_version(self: LanceDataset) -> int:
        reads.count("latest_version")
        return int(latest.fget(self))  # type: ignore[attr-defined]  # it is a property

    monkeypatch.setattr(LanceDataset, "latest_version", property(latest_version))
    return reads
