"""Routes of loads: rows in a body, at once or as jobs, and the jobs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import FileResponse, Response

from omnigraph.choices import EngineRequest, Mode, OnDuplicate, OnError
from omnigraph.engine.budget import Cancellation
from omnigraph.errors import ErrorCode, InvalidInputError, NotFoundError, OmnigraphError
from omnigraph.graph import Graph
from omnigraph.load.readers.arrow_files import read_arrow
from omnigraph.load.results import Progress
from omnigraph.load.sources import FileInput, Form, Inputs, MemoryInput
from omnigraph.model.names import BranchName
from omnigraph.policy.actions import Action
from omnigraph.server import wire
from omnigraph.server.answers import MediaType, answer_json, answer_write
from omnigraph.server.bodies import save_body
from omnigraph.server.context import (
    Call,
    Cursor,
    GraphCall,
    Limit,
    Name,
    expected_head,
    page_of,
)
from omnigraph.server.jobs import Job, JobCancelled, JobEntry, JobState
from omnigraph.server.problems import to_problem
from omnigraph.server.routes.documents import gives, gives_bytes, takes_bytes
from omnigraph.server.service import GraphService, cancelled_error, job_key
from omnigraph.server.uploads import UploadLimits
from omnigraph.transaction.requests import RequestKey

_log: Final = logging.getLogger("omnigraph.server")

router = APIRouter(prefix="/graphs/{graph}")

_LINES: Final = ".jsonl"
_PARQUET: Final = ".parquet"
_ARROW: Final = ".arrow"
_BODY: Final = "body"
_FORMS: Final = {_LINES: Form.LINES, ".csv": Form.CSV, _PARQUET: Form.PARQUET}
_SUFFIXES: Final = {
    "application/x-ndjson": _LINES,
    "application/json": _LINES,
    "text/csv": ".csv",
    "application/vnd.apache.parquet": _PARQUET,
    "application/vnd.apache.arrow.file": _ARROW,
    "application/vnd.apache.arrow.stream": _ARROW,
}
"""The end of the name of a received file, by the media type of its body."""


@dataclass(frozen=True, slots=True)
class LoadQuery:
    """The parameters of a load."""

    mode: Annotated[Mode, Query()] = Mode.APPEND
    branch: Name = None
    start: Annotated[str | None, Query(max_length=1_000, alias="from")] = None
    type: Annotated[str | None, Query(max_length=200)] = None
    on_duplicate: Annotated[OnDuplicate | None, Query()] = None
    ignore_unknown: Annotated[bool, Query()] = False
    on_error: Annotated[OnError, Query()] = OnError.FAIL
    engine: Annotated[EngineRequest, Query()] = EngineRequest.LOCAL
    index: Annotated[bool, Query()] = True
    embed: Annotated[str, Query(max_length=20)] = "auto"
    message: Annotated[str | None, Query(max_length=10_000)] = None


@router.post(
    "/load",
    openapi_extra=takes_bytes(_SUFFIXES),
    responses={**gives(wire.WriteAnswer), **gives(wire.JobAnswer, status=202)},
)
async def load(request: Request, call: Call, how: Annotated[LoadQuery, Depends()]) -> Response:
    """Write all rows of the body in one commit: at once if it is small, else as a job (202).

    With `on_error=quarantine` it is a job in any case: `jobs/ID/rejects` has the rows that it left
    out.
    """
    service = call.service
    limits = service.settings.limits
    header = request.headers.get("idempotency-key")
    suffix = _suffix_of(request)
    if how.type is None and suffix != _LINES:
        message = "the rows of the body have one type, and the request does not name it"
        raise InvalidInputError(message, hint="name it: POST load?type=TYPE")
    # Before the body is read: whoever may not load there sends no rows to this machine.
    may_load = partial(require_loadable, call.graph, how.branch, how.start)
    await service.read(None, call.actor, lambda _: may_load())
    source = service.scratch / f"load-{service.clock.ulid()}{suffix}"
    options = {**asdict(how), "mode": str(how.mode), "on_error": str(how.on_error)}
    options["on_duplicate"] = None if how.on_duplicate is None else str(how.on_duplicate)
    options |= {"engine": str(how.engine), "expect_head": expected_head(request, None)}
    wants_job = how.on_error is OnError.QUARANTINE or wants_async(request)
    refuse_early(call, wants_job=wants_job)
    try:
        size, digest = await save_body(
            request,
            source,
            bytes_max=limits.load_bytes,
            seconds_max=limits.body_seconds,
            expansion=limits.expansion,
        )
        if size <= limits.direct_load_bytes and not wants_job:
            key = None if header is None else RequestKey.parse(header, call.name, options, digest)
            run = _loader(call, source, options, key)
            return await call.write(lambda: answer_write(run(None)))
        job, is_new = await open_job(call, header, options, digest)
        if not is_new:
            source.unlink()
            return job_answer(call, job)
    except BaseException:
        source.unlink(missing_ok=True)
        raise
    rejects = service.jobs.rejects(job.job_id) if how.on_error is OnError.QUARANTINE else None
    run = _loader(call, source, options, job_key(job), rejects)
    service.start_job(lambda: run_job(service, job, run))
    return job_answer(call, job)


def require_loadable(graph: Graph, branch: str | None, start: str | None) -> None:
    """Refuse a load that the policy allows in no case, as the load itself would."""
    graph.require_writable()
    if start is not None:
        graph.snapshot(branch=start)
    place = graph.target.branch if branch is None else BranchName.parse(branch)
    graph.authority.require(Action.LOAD, branch=place)


def _suffix_of(request: Request) -> str:
    kind = request.headers.get("content-type", "application/x-ndjson").partition(";")[0].strip()
    if (suffix := _SUFFIXES.get(kind.lower())) is not None:
        return suffix
    message = f"a load of {kind[:100]!r} is not possible"
    hint = f"use one of {', '.join(_SUFFIXES)}"
    raise InvalidInputError(message, hint=hint, code=ErrorCode.UNSUPPORTED_MEDIA)


Load = Callable[[Progress | None], dict[str, Any]]


def _loader(
    call: GraphCall,
    source: Path,
    options: dict[str, Any],
    key: RequestKey | None,
    rejects: Path | None = None,
) -> Load:
    """What loads a file once, and deletes it."""

    def run(progress: Progress | None) -> dict[str, Any]:
        limits = call.service.settings.limits
        allowed = UploadLimits(limits.load_bytes, limits.expansion)
        try:
            with ExitStack() as stack:
                inputs = _inputs_of(source, options["type"], allowed, stack)
                return load_from(inputs, progress)
        finally:
            source.unlink(missing_ok=True)

    def load_from(inputs: Inputs, progress: Progress | None) -> dict[str, Any]:
        return call.graph.load(
            inputs,
            mode=options["mode"],
            branch=options["branch"],
            start=options["start"],
            on_error=options["on_error"],
            rejects=rejects,
            on_duplicate=options["on_duplicate"],
            ignore_unknown=options["ignore_unknown"],
            engine=options["engine"],
            index=options["index"],
            embed=options["embed"],
            actor=call.actor,
            message=options["message"],
            expect_head=options["expect_head"],
            progress=progress,
            key=key,
        ).to_json()

    return run


def _inputs_of(file: Path, type_name: str | None, limits: UploadLimits, stack: ExitStack) -> Inputs:
    """What the load of a body reads. Reports name it as the client knows it."""
    if file.suffix == _PARQUET:
        limits.check_columns(file, Form.PARQUET)
    if file.suffix != _ARROW:
        form = _FORMS[file.suffix]
        size = file.stat().st_size
        return Inputs((FileInput(_BODY, str(file), form, type_name, None, size),))
    assert type_name is not None, "columns without a type are refused before they arrive"
    rows = read_arrow(str(file), f"the {_BODY}", stack)
    limits.check_rows(rows, file)
    return Inputs((MemoryInput(_BODY, type_name, rows),))


def wants_async(request: Request) -> bool:
    """Whether the client prefers a job, however small its load is."""
    return "respond-async" in request.headers.get("prefer", "").lower()


def refuse_early(call: GraphCall, *, wants_job: bool) -> None:
    """Refuse a load that will be a job before its body is sent, where too many jobs wait."""
    headers = call.request.headers
    declared = headers.get("content-length", "")
    is_large = declared.isdigit() and int(declared) > call.service.settings.limits.direct_load_bytes
    if wants_job or is_large:
        call.service.jobs.require_room(call.name, call.actor, headers.get("idempotency-key"))


async def open_job(
    call: GraphCall, key: str | None, request: dict[str, Any], digest: str
) -> tuple[Job, bool]:
    """The job of a load, and whether it is new: a key that was used for it names the first one."""
    if key is not None:
        RequestKey.parse(key)
    jobs = call.service.jobs
    opening = partial(jobs.once, call.name, call.actor, key=key, request=request, digest=digest)
    return await asyncio.to_thread(opening)


def run_job(service: GraphService, job: Job, run: Load) -> None:
    """Run the load of a job in a thread, and record how it ends."""
    job = replace(job, state=JobState.RUNNING)
    service.jobs.put(job)
    problem: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    try:
        result = run(partial(service.jobs.report, job.job_id))
        state = JobState.DONE
    except JobCancelled:
        state, problem = JobState.CANCELLED, to_problem(cancelled_error(), job.job_id, typed=True)
    except OmnigraphError as error:
        state, problem = JobState.FAILED, to_problem(error, job.job_id, typed=True)
    except Exception:  # noqa: BLE001  # the outermost frame of its thread: a bug must not be lost
        _log.exception("job %s failed", job.job_id)
        state = JobState.FAILED
    progress = service.jobs.find(job.job_id).progress
    ended = replace(job, state=state, progress=progress, result=result, problem=problem)
    service.jobs.put(ended)


def job_answer(call: GraphCall, job: Job) -> Response:
    """The answer to a request that became a job."""
    place = f"/graphs/{job.graph}/jobs/{job.job_id}"
    return answer_json(_facts(call, job), 202, Location=place)


def _facts(call: GraphCall, job: Job) -> Any:
    """A job as its reader sees it: its problem may name files of the server.

    What it says of rows was decided for its actor: others who may not read all types of the branch
    see only its state.
    """
    facts = job.to_json()
    if job.actor != call.actor and not _reads_all(call.graph, job.request.get("branch")):
        facts |= {"result": None, "problem": None, "progress": {}}
    return call.service.hide_places_in(facts)


def _reads_all(graph: Graph, branch: str | None) -> bool:
    """Whether the actor may read every type of a branch."""
    try:
        return not graph.snapshot(branch=branch).hidden
    except NotFoundError:
        return False


@router.get("/jobs", responses=gives(wire.JobsAnswer))
async def jobs(call: Call, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """The jobs of a graph that the actor may see, newest first."""

    def run(_: Cancellation) -> Response:
        seen = [job.job_id for job in call.service.jobs.list(call.name) if _sees(call, job)]
        names, following = page_of(seen, limit, cursor, descending=True)
        found = [_facts(call, call.service.jobs.find(name)) for name in names]
        return answer_json({"jobs": found, "cursor": following})

    return await call.read(run)


@router.get("/jobs/{job_id}", responses=gives(wire.JobAnswer))
async def job(call: Call, job_id: str) -> Response:
    """One job: its state, progress and result."""
    return await call.read(lambda _: answer_json(_facts(call, _find(call, job_id))))


@router.get("/jobs/{job_id}/rejects", responses=gives_bytes(MediaType.NDJSON))
async def job_rejects(call: Call, job_id: str) -> Response:
    """The rows that a job left out, with their reasons, for whoever sent them."""

    def run(_: Cancellation) -> Response:
        found = _find(call, job_id)
        path = call.service.jobs.rejects(found.job_id)
        if found.actor != call.actor or not path.is_file():
            message = f"job {found.job_id} left no rows out"
            raise NotFoundError(message, hint="a load with on_error=quarantine may")
        return FileResponse(path, media_type=MediaType.NDJSON)

    return await call.read(run)


@router.post("/jobs/{job_id}/cancel", responses=gives(wire.JobAnswer))
async def cancel_job(call: Call, job_id: str) -> Response:
    """End a job before it commits; one that has ended stays as it is."""

    def run(_: Cancellation) -> Response:
        found = _find(call, job_id)
        return answer_json(_facts(call, call.service.jobs.cancel(found.job_id)))

    return await call.read(run)


def _sees(call: GraphCall, job: Job | JobEntry) -> bool:
    """Whether a job is of the graph, and is the actor's own, or the actor keeps the graph."""
    if job.graph != call.name:
        return False
    return job.actor == call.actor or call.graph.authority.allows(Action.MAINTAIN)


def _find(call: GraphCall, job_id: str) -> Job:
    found = call.service.jobs.find(job_id)
    # An id that no job has: the same error as for jobs that do not exist.
    return found if _sees(call, found) else call.service.jobs.find("")
