"""The standing of a batch: whether a branch has it, and whether it may be written to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from omnigraph.errors import ErrorCode, LimitExceededError, StreamError
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.names import BranchName
from omnigraph.model.streams import StreamBatch, StreamRecord, StreamStep

STREAMS_MAX: Final = 1000
"""Streams that a branch has records of: every publish writes them all."""


@dataclass(frozen=True, slots=True)
class Due:
    """The branch does not have the batch, and it is the stream's next one."""

    step: StreamStep


@dataclass(frozen=True, slots=True)
class Repeat:
    """The branch has the batch: its process died before Spark recorded that it was done."""

    record: StreamRecord


Standing: TypeAlias = Due | Repeat


def judge(batch: StreamBatch, now: Snapshot, *, adopts: bool = False) -> Standing:
    """Whether a batch is to be written to a branch.

    Every batch is recorded, also one without rows, so the next one has the next number. Only after
    a record of an earlier release, numbers may be those of batches without rows.

    Args:
        now: The branch as it is.
        adopts: Whether a checkpoint may have done batches that the branch does not have.
    """
    record = now.streams.get(batch.stream)
    if record is None:
        return _begin(batch, now, adopts=adopts)
    known = record.batch
    if known.checkpoint != batch.checkpoint:
        raise _replaced_error(batch, record, now.branch)
    if batch == known:
        return Repeat(record)
    if batch.number <= known.number:
        raise _rewound_error(batch, record, now.branch)
    if record.is_gapless and batch.number > known.number + 1 and not adopts:
        raise _gap_error(batch, record, now.branch)
    return Due(StreamStep(batch, record.commit_id, known.number))


def _begin(batch: StreamBatch, now: Snapshot, *, adopts: bool) -> Due:
    _require_unnamed(batch, now.streams, now.branch)
    if batch.number and not adopts:
        message = (
            f"branch {now.branch} has no batch of the stream {batch.stream}, and its checkpoint "
            f"is at batch {batch.number}"
        )
        hint = (
            "the checkpoint wrote elsewhere, or the branch was made again: start with a new "
            "checkpoint, or with adopt if the branch has the rows of the batches before"
        )
        raise StreamError(message, hint=hint, code=ErrorCode.STREAM_UNKNOWN)
    if len(now.streams) >= STREAMS_MAX:
        message = f"branch {now.branch} has records of {STREAMS_MAX:,} streams, which is the limit"
        hint = "forget those that have ended: graph.streams.forget(name)"
        raise LimitExceededError(message, hint=hint)
    return Due(StreamStep(batch, None))


def _require_unnamed(
    batch: StreamBatch, streams: Mapping[str, StreamRecord], branch: BranchName
) -> None:
    """Refuse a checkpoint that the branch knows under another name."""
    for name, record in streams.items():
        if record.batch.checkpoint == batch.checkpoint:
            message = (
                f"the checkpoint of the stream {batch.stream} is that of the stream {name}, which "
                f"is at batch {record.batch.number} of branch {branch}"
            )
            hint = f"a checkpoint that was moved keeps its stream: give it the name {name!r}"
            raise StreamError(message, hint=hint, code=ErrorCode.STREAM_RENAMED)


def _replaced_error(batch: StreamBatch, record: StreamRecord, branch: BranchName) -> StreamError:
    message = (
        f"the stream {batch.stream} is at batch {record.batch.number} of branch {branch} with the "
        f"checkpoint {record.batch.checkpoint}, and this one is {batch.checkpoint}: it was deleted "
        "or replaced since"
    )
    hint = (
        "bring the former checkpoint back; or start a stream of another name, which reads its "
        "sources from their beginning, with the mode merge if rows have keys"
    )
    return StreamError(message, hint=hint, code=ErrorCode.STREAM_REPLACED)


def _gap_error(batch: StreamBatch, record: StreamRecord, branch: BranchName) -> StreamError:
    at = record.batch.number
    first, last = at + 1, batch.number - 1
    missing = (
        f"batch {first} is missing" if first == last else f"batches {first} to {last} are missing"
    )
    message = (
        f"the stream {batch.stream} is at batch {at} of branch {branch}, and its checkpoint gives "
        f"batch {batch.number}: {missing}"
    )
    hint = (
        "the graph is an older copy, or the checkpoint wrote elsewhere meanwhile: bring the newest "
        "graph back, start a stream of another name with a new checkpoint, or start once with "
        "adopt if the branch has the rows of those batches"
    )
    return StreamError(message, hint=hint, code=ErrorCode.STREAM_GAP)


def _rewound_error(batch: StreamBatch, record: StreamRecord, branch: BranchName) -> StreamError:
    at = record.batch.number
    given = "another batch of that number" if batch.number == at else f"batch {batch.number}"
    message = (
        f"the stream {batch.stream} is at batch {at} of branch {branch}, commit "
        f"{record.commit_id}, and its checkpoint gives {given}"
    )
    hint = (
        "another process runs the same stream, or the checkpoint is an older copy: stop this "
        "process, or bring the newest checkpoint back"
    )
    return StreamError(message, hint=hint, code=ErrorCode.STREAM_REWOUND)
