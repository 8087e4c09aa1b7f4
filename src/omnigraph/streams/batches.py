"""Batches of a stream: each is loaded in one commit, exactly once."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Final, Self

from omnigraph.choices import EmbedWhen, EngineName, Mode, OnDuplicate, OnError
from omnigraph.clock import Clock, back_off
from omnigraph.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidParameterError,
    OutcomeUnknownError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.load.duplicates import choose_on_duplicate
from omnigraph.load.loads import LoadRequest, Loads
from omnigraph.load.quarantine import RejectsFile, require_local
from omnigraph.load.results import LoadResult
from omnigraph.load.routes import ByColumn, ByEnvelope, Route, RoutedRows
from omnigraph.load.sources import Source
from omnigraph.manifest.reader import Manifest
from omnigraph.model.arguments import require_choice, require_path, require_text
from omnigraph.model.streams import StreamBatch, require_stream_name
from omnigraph.streams.standing import Repeat, judge
from omnigraph.transaction.writes import WriteRequest

STREAM_ATTEMPTS_MAX: Final = 5
"""Times that a batch of a stream is loaded again because other writers changed its tables."""

STREAM_BACKOFF_SECONDS_MAX: Final = 2.0


_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How the batches of a stream are loaded.

    Attributes:
        name: The name of the stream; that of its checkpoint unless the caller gave one.
        of: The type of its rows, or how each row says its own.
        rejects: The directory for rows that break rules, a file for each batch that has some; None
            where they stop the stream.
        on_duplicate: Which of several rows of one id in a batch is loaded.
        order_by: The column that orders the rows of a batch.
        adopts: Whether a checkpoint may have done batches that the branch does not have.
    """

    name: str
    of: str | Route
    mode: Mode = Mode.APPEND
    rejects: Path | None = None
    ignore_unknown: bool = False
    embed: EmbedWhen = EmbedWhen.AUTO
    adopts: bool = False
    on_duplicate: OnDuplicate = OnDuplicate.REJECT
    order_by: str | None = None

    @classmethod
    def parse(
        cls,
        name: str,
        *,
        type_name: str | None,
        router: str | None,
        envelope: str | None,
        mode: str,
        on_error: str,
        rejects: str | PathLike[str] | None,
        ignore_unknown: bool,
        embed: str,
        adopts: bool,
        on_duplicate: str | None,
        order_by: str | None,
    ) -> Self:
        """Validate what a caller gave."""
        chosen = require_choice(mode, Mode, "mode")
        if chosen is Mode.OVERWRITE:
            message = "a stream cannot overwrite: each batch would replace the one before it"
            raise InvalidParameterError(message, hint="use append or merge", name="mode")
        is_kept = require_choice(on_error, OnError, "on_error") is OnError.QUARANTINE
        if is_kept != (rejects is not None):
            message = "on_error quarantine and rejects go together"
            raise InvalidParameterError(message, hint="give both, or neither", name="rejects")
        return cls(
            require_stream_name(name),
            _parse_route(type_name, router, envelope),
            chosen,
            None if rejects is None else _require_directory(rejects),
            ignore_unknown,
            require_choice(embed, EmbedWhen, "embed"),
            adopts,
            choose_on_duplicate(on_duplicate, chosen, is_ordered=order_by is not None),
            order_by,
        )

    def source(self, rows: object) -> Source:
        """Rows of a batch as what a load reads."""
        if isinstance(self.of, str):
            return {self.of: rows}
        return RoutedRows(rows, self.of)


def _parse_route(type_name: str | None, router: str | None, envelope: str | None) -> str | Route:
    given = {"type": type_name, "router": router, "envelope": envelope}
    named = {name: text for name, text in given.items() if text is not None}
    if len(named) != 1:
        message = f"the types of rows are said by {' and '.join(named) or 'nothing'}"
        hint = "give one of type, the router (a column of names) or the envelope (a column of JSON)"
        raise InvalidParameterError(message, hint=hint, name="type")
    [(name, text)] = named.items()
    text = require_text(text, name)
    return text if name == "type" else ByColumn(text) if name == "router" else ByEnvelope(text)


def _require_directory(given: str | PathLike[str]) -> Path:
    path = require_local(Path(require_path(given, "rejects")))
    if path.exists() and not path.is_dir():
        message = f"{path} is a file, and the rejected rows of a stream are files in a directory"
        raise AlreadyExistsError(message, hint="name a directory", path=str(path))
    return path


@dataclass(frozen=True, slots=True)
class StreamWriter:
    """Writes the batches of one stream to a branch.

    Attributes:
        request: Branch, actor and message of the commits.
    """

    manifest: Manifest
    loads: Loads
    clock: Clock
    request: WriteRequest
    settings: StreamSettings

    def write(
        self, batch: StreamBatch, rows: object, engine: EngineName | None = None
    ) -> LoadResult | None:
        """Load a batch in one commit; None if the branch has it already.

        A batch that changes nothing is recorded without a commit, unless it is the first one of the
        stream, or rows of it were rejected.

        What has been written of a stream is in the manifest's first fragment, so the cost of
        looking it up does not depend on the length of the history. The publish checks it again:
        of two processes that run one stream, one writes the batch.

        Args:
            rows: A DataFrame, or an Arrow table; read once, and again after a conflict.
        """
        attempt = 0
        while True:
            standing = judge(
                batch, self.manifest.current(self.request.branch), adopts=self.settings.adopts
            )
            hit(Failpoint.STREAM_AFTER_LOOKUP)
            if isinstance(standing, Repeat):
                commit_id = standing.record.commit_id
                _log.info("batch %s is there; the newest commit is %s", batch, commit_id)
                return None
            rejects = self._rejects_file(batch)
            request = self._request(rows, engine, rejects)
            try:
                result = self.loads.run(replace(self.request, stream=standing.step), request)
            except (ConflictError, OutcomeUnknownError):
                # What was lost is looked up again; a batch that landed is found then.
                attempt += 1
                if attempt == STREAM_ATTEMPTS_MAX:
                    raise
                back_off(self.clock, attempt, seconds_max=STREAM_BACKOFF_SECONDS_MAX)
            else:
                hit(Failpoint.STREAM_AFTER_BATCH)
                if rejects is not None and not result.rejected:
                    rejects.delete()
                return result

    def _request(
        self, rows: object, engine: EngineName | None, rejects: RejectsFile | None
    ) -> LoadRequest:
        settings = self.settings
        return LoadRequest(
            settings.source(rows),
            mode=settings.mode,
            on_error=OnError.FAIL if rejects is None else OnError.QUARANTINE,
            rejects=rejects,
            ignore_unknown=settings.ignore_unknown,
            engine=engine,
            embed=settings.embed,
            on_duplicate=settings.on_duplicate,
            order_by=settings.order_by,
        )

    def _rejects_file(self, batch: StreamBatch) -> RejectsFile | None:
        """A file for the rejected rows of one attempt at a batch; None where they stop the stream.

        Others may attempt the same batch at the same time: each has a file of its own, and the
        commit names that of the one that landed.
        """
        directory = self.settings.rejects
        if directory is None:
            return None
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            message = f"the rejected rows cannot be written to {directory}: {cause.strerror}"
            hint = "give another directory; nothing was loaded"
            raise StorageError(message, hint=hint) from cause
        name = f"{batch.checkpoint}-{batch.number:09}-{self.clock.ulid()}.jsonl"
        return RejectsFile(directory / name)
