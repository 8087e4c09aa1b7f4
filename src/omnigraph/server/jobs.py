"""Jobs: loads that outlast their request, with a record that outlasts the server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from omnigraph.clock import Clock, is_ulid
from omnigraph.errors import NotFoundError

_SUFFIX: Final = ".json"


class JobState(StrEnum):
    """How far a job is. The last four are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """The server ended before the job, which changed nothing."""

    @property
    def is_final(self) -> bool:
        """Whether it does not change any more."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True)
class Job:
    """One load.

    Attributes:
        request: How to load: mode, branch and the like.
        digest: The SHA-256 of what is loaded.
        progress: By stage, how much is done, and of how much if that is known.
        result: Of a job that is done.
        problem: Of a job that failed.
    """

    job_id: str
    graph: str
    actor: str | None
    key: str
    created_at: str
    request: dict[str, Any]
    digest: str
    state: JobState = JobState.QUEUED
    progress: dict[str, list[int | None]] = field(default_factory=dict)
    result: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The public fields as plain values that JSON can represent."""
        return {name: value for name, value in asdict(self).items() if name not in _PRIVATE}


_PRIVATE: Final = frozenset({"key", "digest", "request"})


class JobFolder:
    """The jobs of one server: small files in a folder, one for each."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._live: dict[str, Job] = {}
        self._cancelled: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def new(
        self,
        graph: str,
        actor: str | None,
        *,
        key: str | None,
        request: dict[str, Any],
        digest: str,
    ) -> Job:
        """Record a job that begins soon."""
        job_id = self._clock.ulid()
        created_at = self._clock.now().isoformat()
        job = Job(job_id, graph, actor, key or f"job {job_id}", created_at, request, digest)
        self.put(job)
        return job

    def put(self, job: Job) -> None:
        """Store the newest state of a job."""
        with self._lock:
            self._live[job.job_id] = job
            if job.state.is_final:
                self._live.pop(job.job_id)
                self._cancelled.discard(job.job_id)
            fresh = self._path(job.job_id).with_suffix(".new")
            with fresh.open("w", encoding="utf-8") as file:
                json.dump(asdict(job), file)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path(job.job_id))

    def find(self, job_id: str) -> Job:
        """A job by its id.

        Raises:
            NotFoundError: there is no such job.
        """
        with self._lock:
            live = self._live.get(job_id)
        if live is not None:
            return live
        if is_ulid(job_id) and self._path(job_id).is_file():
            return _decode(self._path(job_id))
        message = f"there is no job {job_id[:100]!r}"
        raise NotFoundError(message, hint="jobs are listed under /graphs/NAME/jobs")

    def rejects(self, job_id: str) -> Path:
        """The file for rows that a job left out."""
        return self._folder / f"{job_id}.rejects"

    def list(self, graph: str) -> tuple[Job, ...]:
        """The jobs of a graph, newest first."""
        paths = sorted(self._folder.glob(f"*{_SUFFIX}"), reverse=True)
        jobs = (self.find(path.stem) for path in paths)
        return tuple(job for job in jobs if job.graph == graph)

    def report(self, job_id: str, stage: str, done: int, total: int | None) -> None:
        """Note how far a job is; only in memory.

        Raises:
            JobCancelled: the job is to end.
        """
        with self._lock:
            if job_id in self._cancelled and stage not in ("commit", "index"):
                raise JobCancelled
            job = self._live.get(job_id)
            if job is not None:
                progress = {**job.progress, stage: [done, total]}
                self._live[job_id] = replace(job, progress=progress)

    def cancel(self, job_id: str) -> Job:
        """Ask a job to end before it commits; one that has ended stays as it is."""
        job = self.find(job_id)
        if not job.state.is_final:
            with self._lock:
                self._cancelled.add(job_id)
        return self.find(job_id)

    def settle_interrupted(self, landed: Callable[[Job], Mapping[str, Any] | None]) -> int:
        """Report what an earlier server left unfinished: as done if it landed, else interrupted."""
        count = 0
        for path in self._folder.glob(f"*{_SUFFIX}"):
            job = _decode(path)
            if job.state.is_final:
                continue
            result = landed(job)
            state = JobState.INTERRUPTED if result is None else JobState.DONE
            self.put(replace(job, state=state, result=None if result is None else dict(result)))
            count += 1
        return count

    def _path(self, job_id: str) -> Path:
        return self._folder / f"{job_id}{_SUFFIX}"


class JobCancelled(BaseException):  # no error: the load ends by it, and only jobs see it
    """Ends the load of a job that was cancelled; loads let it pass."""


def _decode(path: Path) -> Job:
    fields = json.loads(path.read_text(encoding="utf-8"))
    return Job(**{**fields, "state": JobState(fields["state"])})
