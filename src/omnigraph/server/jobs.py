"""Jobs: loads that outlast their request, with a record that outlasts the server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from omnigraph.clock import Clock, is_ulid
from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    LimitExceededError,
    NotFoundError,
    OmnigraphError,
)
from omnigraph.server.problems import to_problem
from omnigraph.wording import format_instant

_SUFFIX: Final = ".json"
_RETRY_SECONDS: Final = 10
"""When to try again if too many loads wait: large ones take seconds to hours."""


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
_REPEATABLE: Final = frozenset({JobState.INTERRUPTED, JobState.FAILED})


@dataclass(frozen=True, slots=True)
class JobLimits:
    """How many jobs may run and wait, and how many records of ended ones are kept for how long."""

    unfinished: int = 64
    kept: int = 10_000
    kept_days: float = 30.0


@dataclass(frozen=True, slots=True)
class JobEntry:
    """What is known of a job without reading its record."""

    job_id: str
    graph: str
    actor: str | None
    key: str
    created_at: str
    is_final: bool


class JobFolder:
    """The jobs of one server: small files in a folder, one for each.

    An index of them is in memory: no other process changes the folder while a server uses it.
    """

    def __init__(self, folder: Path, clock: Clock, limits: JobLimits | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._limits = limits or JobLimits()
        self._lock = threading.RLock()
        self._live: dict[str, Job] = {}
        self._cancelled: set[str] = set()
        # In the order of their ids, which is that of time.
        self._entries: dict[str, JobEntry] = {}
        self._by_key: dict[tuple[str, str | None, str], str] = {}
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
        with self._lock:
            self.require_room(graph, actor)
            self._delete_old()
            job_id = self._clock.ulid()
            created_at = format_instant(self._clock.now())
            job = Job(job_id, graph, actor, key or f"job {job_id}", created_at, request, digest)
            self.put(job)
            return job

    def require_room(self, graph: str, actor: str | None, key: str | None = None) -> None:
        """Refuse one more job where too many have not ended, of all actors or of one.

        Args:
            key: A job of this key needs no room if there is one.
        """
        with self._lock:
            if key is not None and (graph, actor, key) in self._by_key:
                return
            count = len(self._live)
            own = sum(job.actor == actor for job in self._live.values())
        # One actor may not take every place.
        if count < self._limits.unfinished and own < max(1, self._limits.unfinished // 2):
            return
        message = f"{count} loads run and wait already, {own} of them of this actor"
        hint = "try again when some have ended: GET jobs lists them"
        seconds = _RETRY_SECONDS
        raise LimitExceededError(message, hint=hint, code=ErrorCode.TOO_BUSY, retry_after=seconds)

    def once(
        self,
        graph: str,
        actor: str | None,
        *,
        key: str | None,
        request: dict[str, Any],
        digest: str,
    ) -> tuple[Job, bool]:
        """The job of a key, or a new one, and whether it is new.

        A job that failed or was interrupted is repeated by a new one.
        """
        with self._lock:
            known_id = None if key is None else self._by_key.get((graph, actor, key))
            known = None if known_id is None else self.find(known_id)
            if known is None or known.state in _REPEATABLE:
                return self.new(graph, actor, key=key, request=request, digest=digest), True
        if (known.request, known.digest) != (request, digest):
            message = f"the key {known.key!r} was used for another request"
            hint = "use a new key for each request, and the same one to repeat it as it was"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.REQUEST_MISMATCH)
        return known, False

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
            self._enter(job)

    def _enter(self, job: Job) -> None:
        own = (job.graph, job.actor, job.key)
        self._entries[job.job_id] = JobEntry(job.job_id, *own, job.created_at, job.state.is_final)
        self._by_key[own] = max(job.job_id, self._by_key.get(own, ""))

    def _delete_old(self) -> None:
        """Delete the records of ended jobs, and the rows they left out, beyond number and age."""
        oldest = self._clock.now() - timedelta(days=self._limits.kept_days)
        ended = [entry for entry in self._entries.values() if entry.is_final]
        # With room for the next one.
        excess = len(ended) - self._limits.kept + 1
        for number, entry in enumerate(ended):
            if number >= excess and datetime.fromisoformat(entry.created_at) >= oldest:
                return
            del self._entries[entry.job_id]
            own = (entry.graph, entry.actor, entry.key)
            if self._by_key[own] == entry.job_id:
                del self._by_key[own]
            self._path(entry.job_id).unlink(missing_ok=True)
            self.rejects(entry.job_id).unlink(missing_ok=True)

    def find(self, job_id: str) -> Job:
        """A job by its id."""
        with self._lock:
            live = self._live.get(job_id)
        if live is not None:
            return live
        if is_ulid(job_id) and self._path(job_id).is_file():
            return _decode(self._path(job_id))
        message = f"job {job_id[:100]!r} does not exist"
        raise NotFoundError(message, hint="jobs are listed under /graphs/NAME/jobs")

    def rejects(self, job_id: str) -> Path:
        """The file for rows that a job left out."""
        return self._folder / f"{job_id}.rejects"

    def list(self, graph: str) -> tuple[JobEntry, ...]:
        """The jobs of a graph, newest first."""
        with self._lock:
            entries = tuple(self._entries.values())
        return tuple(entry for entry in reversed(entries) if entry.graph == graph)

    def report(self, job_id: str, stage: str, done: int, total: int | None) -> None:
        """Note how far a job is; only in memory."""
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

    def settle_interrupted(
        self, landed: Callable[[Job], Mapping[str, Any] | None], *, graphs: Collection[str]
    ) -> int:
        """Read all records, and report what an earlier server left unfinished.

        It is done if it landed, and else interrupted; or failed, if that cannot be found out.

        Args:
            landed: The result of a job that landed.
            graphs: Those whose jobs are settled. Nothing is known of those of other graphs.
        """
        count = 0
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            job = _decode(path)
            self._enter(job)
            if not job.state.is_final and job.graph in graphs:
                self.put(_settled(job, landed))
                count += 1
        return count

    def _path(self, job_id: str) -> Path:
        return self._folder / f"{job_id}{_SUFFIX}"


class JobCancelled(BaseException):  # no error: the load ends by it, and only jobs see it
    """Ends the load of a job that was cancelled; loads let it pass."""


def _settled(job: Job, landed: Callable[[Job], Mapping[str, Any] | None]) -> Job:
    try:
        result = landed(job)
    except OmnigraphError as error:
        # One job must not keep the server from its start: a client can cause such a failure.
        problem = to_problem(error, job.job_id, typed=True)
        return replace(job, state=JobState.FAILED, problem=problem)
    if result is None:
        return replace(job, state=JobState.INTERRUPTED)
    return replace(job, state=JobState.DONE, result=dict(result))


def _decode(path: Path) -> Job:
    fields = json.loads(path.read_text(encoding="utf-8"))
    return Job(**{**fields, "state": JobState(fields["state"])})
