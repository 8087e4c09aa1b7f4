"""Streams: micro-batches, and what a branch records of the newest one of each stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from omnigraph.errors import InvalidParameterError
from omnigraph.model.arguments import require_text
from omnigraph.model.brief import brief
from omnigraph.model.ids import CommitId

STREAM_NAME_LENGTH_MAX: Final = 512


@brief
@dataclass(frozen=True, slots=True)
class StreamBatch:
    """One micro-batch of a stream.

    Attributes:
        stream: The name of the stream.
        checkpoint: The id of its checkpoint, which Spark makes with it: a checkpoint that was
            deleted and made again has another one.
        number: The batch's number in that checkpoint, from 0 on.
        digest: Of the checkpoint's entry for the batch, which says what the batch has read.
    """

    stream: str
    checkpoint: str
    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.stream}, batch {self.number}"

    def to_facts(self) -> dict[str, object]:
        """The batch as values that JSON can express."""
        return {
            "stream": self.stream,
            "checkpoint": self.checkpoint,
            "batch": self.number,
            "digest": self.digest,
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The batch that values of `to_facts` describe.

        Raises:
            KeyError: a value is missing.
            TypeError: a value has another type.
        """
        stream, checkpoint, digest = (facts[name] for name in ("stream", "checkpoint", "digest"))
        number = facts["batch"]
        texts = (stream, checkpoint, digest)
        if not all(isinstance(text, str) for text in texts) or type(number) is not int:
            message = f"{facts!r} is not a batch of a stream"
            raise TypeError(message)
        return cls(stream, checkpoint, number, digest)


@brief
@dataclass(frozen=True, slots=True)
class StreamRecord:
    """The newest batch of a stream on a branch.

    Attributes:
        batch: Also one that changed nothing, and made no commit.
        commit_id: The newest commit of the stream.
        ref: The ref of the branch. Branches that were created from it have the record, too, and
            the stream does not write to them.
        is_gapless: Whether the next batch has the next number. Releases that did not record batches
            without rows wrote records that do not say so.
    """

    batch: StreamBatch
    commit_id: CommitId
    ref: str | None
    is_gapless: bool = False


@dataclass(frozen=True, slots=True)
class StreamStep:
    """A batch to be written.

    Attributes:
        after: The commit that the branch records as the newest of the stream; None if it has none.
        after_number: The number of the batch that the branch records as the newest; None if it has
            none, or an earlier release planned the batch.
    """

    batch: StreamBatch
    after: CommitId | None
    after_number: int | None = None


def require_stream_name(name: object) -> str:
    """A valid name of a stream.

    Raises:
        InvalidParameterError: it is not a text, or is blank, too long or not printable.
    """
    text = require_text(name, "stream")
    if text.strip() and text.isprintable() and len(text) <= STREAM_NAME_LENGTH_MAX:
        return text
    message = f"{text[:STREAM_NAME_LENGTH_MAX]!r} is not the name of a stream"
    hint = f"a name is one line of at most {STREAM_NAME_LENGTH_MAX} characters"
    raise InvalidParameterError(message, hint=hint, name="stream")
