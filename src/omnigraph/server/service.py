"""The service: served graphs, and how requests run on them in bounded threads."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from omnigraph import graph as graphs
from omnigraph.clock import Clock, SystemClock
from omnigraph.engine.budget import Budget, Cancellation, Limit, LimitSource, spending
from omnigraph.errors import (
    CancelledError,
    ErrorCode,
    GraphNotFoundError,
    OmnigraphError,
    OutcomeUnknownError,
    StorageError,
)
from omnigraph.graph import Graph, Target
from omnigraph.model.durations import format_duration
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.query_limits import require_timeout
from omnigraph.policy.actions import Action
from omnigraph.policy.files import PolicyFile
from omnigraph.server.admission import Gate, GateLimits, Outbox, Place
from omnigraph.server.identity import Identities
from omnigraph.server.jobs import Job, JobFolder, JobLimits
from omnigraph.server.logins import LoginCodes
from omnigraph.server.metrics import Metrics
from omnigraph.server.preload import preload
from omnigraph.server.settings import ServerSettings
from omnigraph.server.state import StateLock
from omnigraph.server.tokens import TokenFile
from omnigraph.transaction.requests import RequestKey

_log: Final = logging.getLogger("omnigraph.server")
_HANDLES_MAX: Final = 64
"""Actors of graphs with a policy whose handles are kept open."""
_SMALL_BYTES: Final = 64 << 10
"""Answers of this size are in the buffers of their connection, whose number is bounded."""
_UNTIL_SENT: Final = "omnigraph.until_sent"

_ACTORS_MAX: Final = 1_000
"""Actors of whom it is remembered whether a graph exists for them."""

T = TypeVar("T")


class GraphService:
    """All that requests share: graphs, gates, threads, jobs, identities and counters."""

    def __init__(self, settings: ServerSettings, clock: Clock | None = None) -> None:
        limits = settings.limits
        self.settings = settings
        self.clock = clock or SystemClock()
        self.identities = Identities(settings, self.clock)
        self.logins = LoginCodes(TokenFile(settings.token_file, self.clock), self.clock)
        self.metrics = Metrics()
        self._state = StateLock(settings.state)
        self.scratch = settings.state / "scratch"
        self.jobs = JobFolder(
            settings.state / "jobs",
            self.clock,
            JobLimits(limits.jobs, limits.jobs_kept, limits.jobs_kept_days),
        )
        self.reads = Gate(
            "read",
            GateLimits(limits.reads, limits.reads_per_actor, limits.waiting, limits.wait_seconds),
        )
        self.writes = Gate(
            "write",
            GateLimits(limits.writes, limits.writes_per_actor, limits.waiting, limits.wait_seconds),
        )
        self.outbox = Outbox(limits.unsent_bytes)
        self._graphs: Mapping[str, Graph] = {}
        self._policies = _read_policies(settings)
        self._readers = ThreadPoolExecutor(limits.reads, thread_name_prefix="read")
        self._writers = ThreadPoolExecutor(limits.writes, thread_name_prefix="write")
        self._loaders = ThreadPoolExecutor(2, thread_name_prefix="load")
        self._cancellations: set[Cancellation] = set()
        self._lock = threading.Lock()
        self._handle = lru_cache(maxsize=_HANDLES_MAX)(self._bind)
        self._handle_at = lru_cache(maxsize=_HANDLES_MAX)(_handle_at)
        self._reads_main = lru_cache(maxsize=_ACTORS_MAX)(self._find_main)
        self._has_rights = lru_cache(maxsize=_ACTORS_MAX)(self._find_rights)
        self._stops_at: float | None = None
        self._overdue: asyncio.Future[None] | None = None
        self.has_ended = False

    def open(self) -> None:
        """Open every graph, which recovers interrupted writes; then settle interrupted jobs."""
        self._state.acquire()
        try:
            self._open()
        except BaseException:
            self._state.release()
            raise

    def _open(self) -> None:
        preload()
        self._graphs = {
            name: graphs.open(section.uri, read_only=section.read_only, clock=self.clock)
            for name, section in self.settings.graphs.items()
        }
        for handle in self._graphs.values():
            handle.keep_comparisons()
        _empty(self.scratch)
        if count := self.jobs.settle_interrupted(self._landed, graphs=self._graphs):
            _log.warning("%s jobs were interrupted", count)

    def _landed(self, job: Job) -> Mapping[str, Any] | None:
        return self._graphs[job.graph].requests.landed(job_key(job), job.actor)

    def graph(self, name: str, actor: str | None) -> Graph:
        """The handle through which an actor uses a graph."""
        found = self._graphs.get(name)
        if found is None:
            raise unknown_graph_error(name)
        policy = self._policies.get(name)
        if policy is None:
            return found
        # Policy is enforced below, by the facade, for the actor of a handle.
        edition, _ = policy.current()
        return self._handle(name, actor, edition)

    def _bind(self, name: str, actor: str | None, _: int) -> Graph:
        # Two graphs whose places end alike have names of their own here.
        return self._graphs[name].acting_as(actor, self._policies[name].current()[1], name)

    def shows(self, name: str, actor: str | None) -> bool:
        """Whether an actor may do anything in a graph; if not, there is none for it."""
        if self.shows_main(name, actor):
            return True
        edition, _ = self._policies[name].current()
        return self._has_rights(name, actor, edition, tuple(self._graphs[name].branches.list()))

    def shows_main(self, name: str, actor: str | None) -> bool:
        """Whether an actor may read main, which is known at once."""
        if (policy := self._policies.get(name)) is None:
            return True
        edition, _ = policy.current()
        return self._reads_main(name, actor, edition)

    def _find_main(self, name: str, actor: str | None, edition: int) -> bool:
        return self._handle(name, actor, edition).authority.allows(Action.READ, MAIN)

    def _find_rights(
        self, name: str, actor: str | None, edition: int, branches: tuple[str, ...]
    ) -> bool:
        authority = self._handle(name, actor, edition).authority
        return authority.has_rights(map(BranchName, branches))

    def handle_at(self, graph: Graph, target: Target, *, read_only: bool) -> Graph:
        """A handle on a branch or commit, kept open for its next request."""
        return self._handle_at(graph, target, read_only)

    def own_graph(self, name: str) -> Graph:
        """The handle of the server itself, which no policy binds: for recovery and upkeep."""
        return self._graphs[name]

    def hide_places(self, text: str) -> str:
        """A text of JSON with names in place of where graphs, uploads and policies are stored."""
        # A place within another one is replaced first.
        for place, name in sorted(self._places(), key=lambda each: -len(each[0])):
            text = text.replace(json.dumps(place)[1:-1], name)
        return text

    def _places(self) -> Iterator[tuple[str, str]]:
        """Places of the server, and what clients call them."""
        yield from ((handle.uri, name) for name, handle in self._graphs.items())
        yield str(self.scratch), "upload"
        yield str(self.scratch.absolute()), "upload"
        yield str(self.settings.state.absolute()), "state"
        paths = (section.policy for section in self.settings.graphs.values())
        yield from (
            (str(path.absolute()), path.name)
            for path in (self.settings.policy, *paths)
            if path is not None
        )

    def hide_places_in(self, document: dict[str, Any]) -> dict[str, Any]:
        """A document in which no text says where the server stores anything."""
        hidden: dict[str, Any] = json.loads(self.hide_places(json.dumps(document)))
        return hidden

    @property
    def graph_names(self) -> tuple[str, ...]:
        """The names of the served graphs."""
        return tuple(self._graphs)

    @property
    def is_stopping(self) -> bool:
        """Whether it takes no more work."""
        return self._stops_at is not None

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests."""
        return bool(self._graphs) and not self.is_stopping

    async def read(
        self,
        request: Request | None,
        actor: str | None,
        work: Callable[[Cancellation], T],
        *,
        is_timed: bool = True,
    ) -> T:
        """Run a read in a thread; a client that leaves, and a server that stops, cancel it.

        Args:
            request: None if somebody else watches whether the client leaves.
            is_timed: Whether it may take as long as a query, and no longer.
        """
        async with self.reads.enter(actor) as place:
            self._require_running()
            with self._cancellation() as cancellation:
                loop = asyncio.get_running_loop()
                budget = self._budget(cancellation, is_timed=is_timed)
                reading = loop.run_in_executor(
                    self._readers, _spend, budget, partial(work, cancellation)
                )
                leave = cancellation.cancel
                if request is None:
                    return await self._finish(reading, _stopping_error, leave)
                watch = loop.create_task(_cancel_when_left(request, cancellation))
                try:
                    result = await self._finish(reading, _stopping_error, leave)
                finally:
                    watch.cancel()
            if isinstance(result, Response):
                self._hold_until_sent(request, place, result)
            return result

    def _budget(self, cancellation: Cancellation, *, is_timed: bool) -> Budget:
        """What a read may spend of time, whatever it does."""
        timeout = self.settings.limits.query_timeout
        allowed = require_timeout(timeout, "query_timeout") if is_timed else None
        if allowed is None:
            return Budget(cancellation=cancellation)
        seconds = allowed.total_seconds()
        limit = Limit(seconds, format_duration(allowed), LimitSource.SERVER)
        return Budget(limit, cancellation=cancellation, ends_at=time.monotonic() + seconds)

    def _hold_until_sent(self, request: Request, place: Place, answer: Response) -> None:
        """Count an answer until its client has received it: by its bytes, or by its place.

        A client that reads slowly frees its place for others while its answer is small enough.
        """
        size = _size_of(answer)
        if size is not None and size <= _SMALL_BYTES:
            return
        release = None if size is None else self.outbox.put(place.actor, size)
        until_sent(request.scope).callback(release or place.keep())

    async def write(self, actor: str | None, work: Callable[[], T]) -> T:
        """Run a write in a thread, to its end: no client that leaves interrupts it."""
        async with self.writes.enter(actor):
            self._require_running()
            running = asyncio.get_running_loop().run_in_executor(self._writers, work)
            return await self._finish(running, _interrupted_error)

    async def _finish(
        self,
        running: asyncio.Future[T],
        error: Callable[[], OmnigraphError],
        leave: Callable[[], None] | None = None,
    ) -> T:
        """What work in a thread returns; the error if the server has no time left for it.

        Args:
            leave: Ends the work when nobody waits for it any more.
        """
        ends: set[asyncio.Future[Any]] = {running, self._overdue_future()}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if leave is not None:
                leave()
            # Its place is free when it has ended, and not before.
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            raise
        if running.done():
            return running.result()
        running.add_done_callback(_ignore_result)
        raise error()

    def _overdue_future(self) -> asyncio.Future[None]:
        """Done when the time to stop is over."""
        if self._overdue is None:
            self._overdue = asyncio.get_running_loop().create_future()
        return self._overdue

    def start_job(self, work: Callable[[], None]) -> None:
        """Run a job in a thread of its own kind: large loads must not keep small writes waiting."""
        # The next server reports a job as interrupted that this one does not begin any more.
        if not self.is_stopping:
            self._loaders.submit(work)

    def begin_stop(self) -> None:
        """Take no more work, and cancel reads; writes that have begun have `stop_seconds` to end.

        To be called on the event loop.
        """
        if self.is_stopping:
            return
        seconds = self.settings.stop_seconds
        self._stops_at = time.monotonic() + seconds
        with self._lock:
            running = tuple(self._cancellations)
        for cancellation in running:
            cancellation.cancel()
        self._loaders.shutdown(wait=False, cancel_futures=True)
        overdue = self._overdue_future()
        asyncio.get_running_loop().call_later(seconds, _set_done, overdue)

    def stop(self) -> None:
        """Wait for writes that have begun, for what is left of the time to stop.

        What runs longer is interrupted by the end of the process, and recovered by the next one, as
        after a crash.
        """
        assert self._stops_at is not None, "it has begun to stop"
        pools = (self._writers, self._loaders, self._readers)
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        waiter = threading.Thread(target=_join, args=(pools,), daemon=True)
        waiter.start()
        waiter.join(max(0.0, self._stops_at - time.monotonic()))
        if waiter.is_alive():
            # They use the state folder until the process ends.
            seconds = self.settings.stop_seconds
            _log.warning("writes still run after %s s: they are interrupted", seconds)
            return
        self.has_ended = True
        self._state.release()

    def _require_running(self) -> None:
        if self.is_stopping:
            raise _stopping_error()

    def _cancellation(self) -> _CancellationScope:
        return _CancellationScope(self._cancellations, self._lock)


def until_sent(scope: Scope) -> ExitStack:
    """What is done when the answer to a request was sent, or its client has left."""
    stack: ExitStack = scope.setdefault(_UNTIL_SENT, ExitStack())
    return stack


def _size_of(answer: Response) -> int | None:
    """The bytes of an answer; None if that is not known before it is sent."""
    declared = answer.headers.get("content-length", "")
    return int(declared) if declared.isdigit() else None


def _read_policies(settings: ServerSettings) -> Mapping[str, PolicyFile]:
    """The policies of the graphs that have one, by the name of the graph."""
    paths = {name: section.policy or settings.policy for name, section in settings.graphs.items()}
    files = {path: PolicyFile(path) for path in set(paths.values()) if path is not None}
    return {name: files[path] for name, path in paths.items() if path is not None}


def unknown_graph_error(name: str) -> GraphNotFoundError:
    """The error about a graph that is not served, or of which the actor may read nothing."""
    message = f"this server has no graph {name[:100]!r}"
    return GraphNotFoundError(message, hint="see /graphs for those it has")


def _spend(budget: Budget, work: Callable[[], T]) -> T:
    with spending(budget):
        return work()


def _stopping_error() -> StorageError:
    message = "the server stops"
    return StorageError(message, hint="try again, with the next one", retry_after=1)


def _interrupted_error() -> OutcomeUnknownError:
    message = "the server stopped before the write had ended"
    hint = "read before you repeat it; with its Idempotency-Key, it lands once"
    return OutcomeUnknownError(message, hint=hint)


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _ignore_result(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


def _join(pools: Sequence[ThreadPoolExecutor]) -> None:
    for pool in pools:
        pool.shutdown(wait=True)


class _CancellationScope:
    """A cancellation that the service knows for the block."""

    def __init__(self, known: set[Cancellation], lock: threading.Lock) -> None:
        self._known, self._lock = known, lock
        self._own = Cancellation()

    def __enter__(self) -> Cancellation:
        with self._lock:
            self._known.add(self._own)
        return self._own

    def __exit__(self, *failure: object) -> None:
        with self._lock:
            self._known.discard(self._own)


async def _cancel_when_left(request: Request, cancellation: Cancellation) -> None:
    # The body was read, so that the next message is that the client has left.
    while not await request.is_disconnected():
        await asyncio.sleep(0.1)
    cancellation.cancel()


def job_key(job: Job) -> RequestKey:
    """The key under which the load of a job lands once."""
    return RequestKey.parse(job.key, job.graph, job.request, job.digest)


def _handle_at(graph: Graph, target: Target, read_only: bool) -> Graph:  # noqa: FBT001  # a cache's key
    return graph.reading(target, read_only=read_only)


def _empty(folder: Path) -> None:
    """Delete what an earlier server left in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@asynccontextmanager
async def upkeep(service: GraphService) -> AsyncIterator[None]:
    """Recover, optimize and clean up in the background, as the settings say."""
    section = service.settings.background
    plans: list[tuple[float, Callable[[Graph], object]]] = [
        (section.recovery_seconds, lambda handle: handle.refresh()),
        (section.optimize_seconds, lambda handle: handle.optimize(if_needed=True)),
        (section.cleanup_seconds, lambda handle: handle.cleanup()),
    ]
    tasks = [asyncio.create_task(_repeat(service, *plan)) for plan in plans if plan[0]]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _repeat(service: GraphService, seconds: float, work: Callable[[Graph], object]) -> None:
    while True:
        await asyncio.sleep(seconds)
        if service.is_stopping:
            return
        for name in service.graph_names:
            handle = service.own_graph(name)
            if handle.read_only:
                continue
            try:
                await service.write(None, lambda handle=handle: work(handle))  # type: ignore[misc]
            except OmnigraphError as failure:
                _log.warning("upkeep of graph %s failed: %s", name, failure)


def cancelled_error() -> CancelledError:
    """The error of a job that was cancelled."""
    message = "the job was cancelled; nothing was loaded"
    return CancelledError(message, code=ErrorCode.CANCELLED)
