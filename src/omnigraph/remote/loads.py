"""Loads into remote graphs: inputs are found here, sent in one body, and loaded there."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from omnigraph.clock import SystemClock
from omnigraph.documents.archives import MEDIA_TYPE, archive_pieces
from omnigraph.documents.failures import from_problem
from omnigraph.documents.loads import send_inputs
from omnigraph.documents.operations import OPERATIONS, CallKind, Operation
from omnigraph.documents.results import split_line
from omnigraph.documents.values import from_document
from omnigraph.errors import (
    CancelledError,
    InternalError,
    OmnigraphError,
    StorageError,
)
from omnigraph.load.results import LoadResult, Progress
from omnigraph.load.sources import resolve
from omnigraph.remote.calls import Handle, key_of
from omnigraph.remote.connections import Sending

REMOTE_POLL_SECONDS: Final = 0.2
REMOTE_POLL_SECONDS_MAX: Final = 2.0
"""How often a client looks how far its load is: at first, and later."""

REMOTE_REPEATS_MAX: Final = 5
"""How often a client sends a load again that the server's end interrupted."""


_LOAD: Final = Operation("load", CallKind.KEYED)
_SENT: Final = (
    *("mode", "branch", "start", "on_error", "ignore_unknown", "engine", "index", "embed"),
    *("message", "expect_head", "on_duplicate"),
)


def load(handle: Handle, arguments: Mapping[str, Any]) -> LoadResult:
    """Load what is here into the graph that is there, in one commit."""
    handle.call(OPERATIONS["require_writable"], {})
    rejects = arguments.get("rejects")
    if rejects is not None:
        _require_new(Path(rejects))
    place = arguments.get("start") or arguments.get("branch")
    catalog = handle.call(OPERATIONS["schema.show"], {"branch": place} if place else {}).catalog
    inputs = resolve(arguments["source"], catalog, arguments.get("csv"), reads_stores=False)
    if (column := arguments.get("order_by")) is not None:
        inputs = inputs.ordered_by(column, catalog)
    with TemporaryDirectory(prefix="omnigraph-load-") as folder:
        made = iter(range(len(inputs.items)))
        described, files = send_inputs(inputs, lambda: Path(folder, str(next(made))))
        sent = {name: arguments[name] for name in _SENT if name in arguments}
        envelope = handle.envelope(sent, arguments.get("actor"))
        envelope |= {"inputs": described, "rejects": rejects and Path(rejects).name}
        return _Load(handle, envelope, files, arguments).run()


def _require_new(path: Path) -> None:
    # Imported here: what rejects rows loads Arrow, and a load of a file needs no Arrow here.
    from omnigraph.load.quarantine import require_new

    require_new(path)


class _Load:
    """One load, from its body to its result, by as many requests as it takes."""

    def __init__(
        self,
        handle: Handle,
        envelope: Mapping[str, Any],
        files: list[Path],
        arguments: Mapping[str, Any],
    ) -> None:
        self._handle = handle
        self._envelope = envelope
        self._files = files
        self._progress: Progress | None = arguments.get("progress")
        rejects = arguments.get("rejects")
        self._rejects = None if rejects is None else Path(rejects)
        self._key = key_of(_LOAD, arguments) or SystemClock().ulid()

    def run(self) -> LoadResult:
        for _ in range(REMOTE_REPEATS_MAX):
            result = self._send()
            if result is not None:
                return result
        message = "the server was interrupted each time that it began with the load"
        raise StorageError(message, hint="try again when it runs", key=self._key)

    def _send(self) -> LoadResult | None:
        headers = {"Content-Type": MEDIA_TYPE}
        if self._progress is not None or self._rejects is not None:
            headers["Prefer"] = "respond-async"
        sending = Sending(
            "POST",
            "calls/load",
            CallKind.KEYED,
            content=lambda: archive_pieces(self._envelope, self._files),
            headers=headers,
            key=self._key,
        )
        line, _ = split_line(self._handle.connection.send(sending))
        answer = json.loads(line)
        if "job_id" in answer:
            return self._follow(str(answer["job_id"]))
        result = from_document(answer)
        assert isinstance(result, LoadResult), "that is what a load returns"
        return result

    def _follow(self, job_id: str) -> LoadResult | None:
        """The result of a job; None if the server was interrupted, and nothing was loaded."""
        try:
            job = self._wait_for(job_id)
        except OmnigraphError:
            raise
        except BaseException as interruption:
            self._cancel(job_id, interruption)
            raise
        match job["state"]:
            case "done":
                result = LoadResult.from_json(job["result"])
                self._take_rejects(job_id, result)
                return result
            case "interrupted":
                return None
            case _:
                raise _failure_of(job)

    def _wait_for(self, job_id: str) -> dict[str, Any]:
        pause, reported = REMOTE_POLL_SECONDS, dict[str, list[int | None]]()
        while True:
            job = self._job(f"jobs/{job_id}")
            reported = self._report(job["progress"], reported)
            if job["state"] not in ("queued", "running"):
                return job
            time.sleep(pause)
            pause = min(REMOTE_POLL_SECONDS_MAX, pause * 1.5)

    def _report(
        self, progress: Mapping[str, list[int | None]], reported: dict[str, list[int | None]]
    ) -> dict[str, list[int | None]]:
        if self._progress is not None:
            for stage, (done, total) in progress.items():
                if reported.get(stage) != [done, total]:
                    self._progress(stage, done or 0, total)
        return dict(progress)

    def _take_rejects(self, job_id: str, result: LoadResult) -> None:
        if self._rejects is None:
            return
        sending = Sending("GET", f"jobs/{job_id}/rejects", CallKind.READ)
        data = self._handle.connection.send(sending)
        try:
            with self._rejects.open("xb") as file:
                file.write(data)
        except OSError as cause:
            message = f"{self._rejects} cannot be written: {cause.strerror or cause}"
            note = f"the load landed as commit {result.commit_id}"
            raise StorageError(message, hint=note) from cause

    def _cancel(self, job_id: str, interruption: BaseException) -> None:
        """End a job that nobody waits for any more."""
        try:
            self._job(f"jobs/{job_id}/cancel", "POST")
        except OmnigraphError as failure:
            interruption.add_note(f"the server may load on: {failure.message}")

    def _job(self, path: str, method: str = "GET") -> dict[str, Any]:
        # Asking twice to end a job ends it once.
        answer = self._handle.connection.send(Sending(method, path, CallKind.READ))
        job = json.loads(bytes(answer))
        assert isinstance(job, dict), "that is how jobs are answered"
        return job


def _failure_of(job: Mapping[str, Any]) -> OmnigraphError:
    problem = job.get("problem")
    if problem is not None:
        return from_problem(problem)
    if job["state"] == "cancelled":
        message = "the load was cancelled; nothing was loaded"
        return CancelledError(message)
    message = "the server failed: this is a bug"
    return InternalError(message, hint=f"report it with the log of job {job['job_id']}")
