"""Routes for clients in Python: the methods of a graph, with its arguments, results and errors.

`documents.operations` lists them. Arguments reach the facade as they were given, which checks them:
so errors are those of an embedded graph. Nothing here names a file of the server.
"""

from __future__ import annotations

import asyncio
import inspect
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from omnigraph.documents.archives import MEDIA_TYPE as ARCHIVE
from omnigraph.documents.archives import RequestArchive, folder_pieces
from omnigraph.documents.changes import RowsRequest, chunk_pieces, find_changes
from omnigraph.documents.loads import receive_inputs
from omnigraph.documents.operations import OPERATIONS, CallKind, Operation, own_arguments
from omnigraph.documents.results import MEDIA_TYPE, ResultBody, document_line, pack
from omnigraph.documents.values import PLAIN, from_document
from omnigraph.engine.budget import Cancellation
from omnigraph.errors import ErrorCode, InvalidInputError, NotAllowedError, NotFoundError
from omnigraph.formats.arrow_streams import Piece
from omnigraph.graph import Graph, Target
from omnigraph.lang.source import Source
from omnigraph.load.quarantine import RejectsFile
from omnigraph.load.results import LoadResult, Progress
from omnigraph.load.sources import Inputs
from omnigraph.server.answers import stream_arrow
from omnigraph.server.bodies import receive_body
from omnigraph.server.context import Call, GraphCall, budget_of, read_json, refuse_key
from omnigraph.server.models import require_own_models
from omnigraph.server.routes.documents import gives, gives_bytes, takes, takes_bytes
from omnigraph.server.routes.loads import (
    job_answer,
    open_job,
    refuse_early,
    require_loadable,
    run_job,
    wants_async,
)
from omnigraph.server.service import job_key, until_sent
from omnigraph.server.uploads import UploadLimits
from omnigraph.server.wire import CallBody, JobAnswer
from omnigraph.transaction.requests import RequestKey

router = APIRouter(prefix="/graphs/{graph}/calls")

_ROWS_AT_ONCE_MAX: Final = 1_000
_NAME_LETTERS_MAX: Final = 255
_NAME_BYTES_MAX: Final = 200
"""Of a file that is exported to: file systems allow 255, with what is put before and behind it."""
_SPENDS: Final = {
    "query": ("timeout", "memory", "max_rows"),
    "mutate": ("timeout",),
    "queries.run": ("timeout", "memory", "max_rows"),
}
"""By operation, the limits that the server's own bound."""

_OF_PLACES: Final = frozenset(
    {
        "check",
        "cleanup",
        "proposals.show",
        "recoveries.list",
        "recoveries.pending",
        "repair",
        "schema.purge",
    }
)
"""Operations whose results say where the graph or its tables are stored."""

_OF_SCHEMAS: Final = frozenset({"schema.apply", "schema.plan"})
"""Operations that take a new schema for a branch."""

_GUARDED: Final = ("_url", "_key")
"""Settings that say where a server sends texts, and which secret of its own with them."""


@router.post(
    "/load",
    openapi_extra=takes_bytes([ARCHIVE]),
    responses={**gives_bytes(MEDIA_TYPE), **gives(JobAnswer, status=202)},
)
async def load(request: Request, call: Call) -> Response:
    """Load the inputs of an archive in one commit: at once if it is small, else as a job (202)."""
    service = call.service
    limits = service.settings.limits
    _require_archive(request)
    waits = wants_async(request)
    refuse_early(call, wants_job=waits)
    folder = service.scratch / f"load-{service.clock.ulid()}"
    folder.mkdir(parents=True)
    archive = RequestArchive(folder, request_bytes_max=limits.body_bytes)

    async def take(piece: bytes) -> None:
        was_known = archive.request is not None
        await asyncio.to_thread(archive.feed, piece)
        if archive.request is not None and not was_known:
            # Whoever may not load there sends no file to this machine.
            admit = partial(_admit, call, archive.request)
            await service.read(None, call.actor, lambda _: admit())
            await asyncio.to_thread(archive.feed, b"")

    try:
        try:
            size, digest = await receive_body(
                request,
                take,
                bytes_max=limits.load_bytes,
                seconds_max=limits.body_seconds,
                expansion=limits.expansion,
            )
            archive.finish()
        finally:
            archive.close()
        envelope = archive.request
        assert envelope is not None, "an archive that is whole has one"
        header = request.headers.get("idempotency-key")
        allowed = UploadLimits(limits.load_bytes, limits.expansion)
        handle = _handle(call, envelope)
        work = partial(_load, handle, envelope, archive.files, call.actor, folder, allowed)
        if size <= limits.direct_load_bytes and not waits:
            key = None if header is None else RequestKey.parse(header, call.name, _LOAD, digest)
            body = await call.write(lambda: ResultBody(work(key, None, None)))
            return Response(b"".join(body.pieces()), media_type=MEDIA_TYPE)
        job, is_new = await open_job(call, header, _LOAD, digest)
        if not is_new:
            shutil.rmtree(folder, ignore_errors=True)
            return job_answer(call, job)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    rejects = _rejects_file(service.jobs.rejects(job.job_id), envelope.get("rejects"))

    def run(progress: Progress | None) -> dict[str, Any]:
        return work(job_key(job), rejects, progress).to_json()

    service.start_job(lambda: run_job(service, job, run))
    return job_answer(call, job)


def _admit(call: GraphCall, envelope: Mapping[str, Any]) -> None:
    """Refuse a load that is not allowed in any case, before its files arrive."""
    given = _arguments(envelope)
    _require_fitting(Graph.load, {"source": None, **given})
    require_loadable(_handle(call, envelope), given.get("branch"), given.get("start"))


def _rejects_file(path: Path, name: object) -> RejectsFile | None:
    """The file for rows that a job leaves out; the commit has the name that the client gave it."""
    return RejectsFile(path, name[:_NAME_LETTERS_MAX]) if isinstance(name, str) else None


_LOAD: Final[dict[str, Any]] = {"call": "load"}
"""What is recorded of a load besides the digest of its archive, which has all the rest."""


def _require_archive(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != ARCHIVE:
        message = f"the body is {kind[:100]!r}, and has to be {ARCHIVE}"
        hint = "POST load takes other forms"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.UNSUPPORTED_MEDIA)


def _load(
    handle: Graph,
    envelope: Mapping[str, Any],
    files: list[Path],
    actor: str | None,
    folder: Path,
    limits: UploadLimits,
    key: RequestKey | None,
    rejects: RejectsFile | None,
    progress: Progress | None,
) -> LoadResult:
    """Load what a client sent, and delete it."""
    try:
        with ExitStack() as stack:
            inputs: Inputs = receive_inputs(envelope.get("inputs"), files, stack)
            limits.check(inputs, files)
            arguments = {
                **_arguments(envelope),
                "source": inputs,
                "rejects": rejects,
                "actor": actor,
                "progress": progress,
                "key": key,
            }
            _require_fitting(Graph.load, arguments)
            return handle.load(**arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@router.post("/export", openapi_extra=takes(CallBody), responses=gives_bytes(MEDIA_TYPE))
async def export(request: Request, call: Call) -> Response:
    """Write the rows that a handle reads to files, and send them as an archive."""
    service = call.service
    envelope = (await read_json(request, CallBody)).model_dump()
    folder = service.scratch / f"export-{service.clock.ulid()}"
    arguments = _arguments(envelope)
    name = arguments.pop("target", None)
    if "progress" in arguments:
        raise _unfitting_error(why="progress is the caller's own")
    if not _is_file_name(name):
        message = f"{str(name)[:100]!r} is not a file name"
        raise InvalidInputError(message, hint="send the last part of the target's name")
    _require_fitting(Graph.export, {**arguments, "target": name})
    handle = _handle(call, envelope)

    def run(_: Cancellation) -> Response:
        folder.mkdir(parents=True)
        result = handle.export(folder / name, **arguments)
        # The client knows where it writes to, and not where that is here.
        shown = replace(result, target=name)
        return StreamingResponse(pieces(shown), media_type=MEDIA_TYPE)

    def pieces(result: Any) -> Iterator[bytes]:
        yield document_line(result)
        yield from folder_pieces(folder / name if (folder / name).is_dir() else folder)

    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    loop = asyncio.get_running_loop()
    until_sent(request.scope).callback(loop.run_in_executor, None, remove)
    return await call.read(run, is_timed=False)


def _is_file_name(name: object) -> bool:
    if not isinstance(name, str) or name in ("", "-", ".", "..") or "/" in name:
        return False
    return name.isprintable() and len(name.encode()) <= _NAME_BYTES_MAX


@router.post("/changed_rows", openapi_extra=takes(CallBody), responses=gives_bytes(MEDIA_TYPE))
async def changed_rows(request: Request, call: Call) -> Response:
    """The changed rows of one type that were too many to be sent with their diff."""
    envelope = (await read_json(request, CallBody)).model_dump()
    arguments = _arguments(envelope)
    ops = arguments.pop("ops", None)
    try:
        wanted = RowsRequest(**arguments)
    except TypeError as cause:
        raise _unfitting_error(why=cause) from cause
    handle = _handle(call, envelope)

    def run(_: Cancellation) -> Response:
        diff = handle.diff(
            wanted.before, wanted.after, types=wanted.type_name, ops=ops, engine="local"
        )
        pieces: Iterator[Piece] = chunk_pieces(find_changes(diff, wanted))
        return StreamingResponse(pieces, media_type=MEDIA_TYPE)

    return await call.read(run)


@router.post("/{operation}", openapi_extra=takes(CallBody), responses=gives_bytes(MEDIA_TYPE))
async def call_method(request: Request, call: Call, operation: str) -> Response:
    """Call a method of the graph, such as `branches.create`, for a client in Python."""
    found = OPERATIONS.get(operation)
    if found is None:
        message = f"{operation[:100]!r} is not an operation"
        raise NotFoundError(message, hint="use the same release of Omnigraph on both sides")
    envelope = (await read_json(request, CallBody)).model_dump()

    def run(cancellation: Cancellation | None) -> Response:
        handle = _handle(call, envelope)
        method = attrgetter(found.name)(handle)
        arguments = _checked_arguments(found, envelope) | _limits(request, found, envelope)
        own = {"actor": call.actor, "cancel": cancellation, "key": _key(request, found, envelope)}
        takes = _signature(method.__func__).parameters
        taken = own_arguments(found)
        arguments |= {name: own[name] for name in taken if name in takes and name in own}
        _require_fitting(method.__func__, arguments)
        if found.name in _OF_SCHEMAS:
            branch = arguments.get("branch") or str(handle.target.branch)
            require_own_models(handle, arguments["schema"], branch)
        answer = _answer(method(**arguments))
        if found.name in _OF_PLACES:
            shown = call.service.hide_places(bytes(answer.body).decode())
            return Response(shown, media_type=MEDIA_TYPE)
        return answer

    if found.kind is CallKind.READ:
        return await call.read(run)
    return await call.write(lambda: run(None))


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _key(request: Request, operation: Operation, envelope: Mapping[str, Any]) -> RequestKey | None:
    if operation.kind is not CallKind.KEYED:
        refuse_key(request)
        return None
    header = request.headers.get("idempotency-key")
    described = (request.path_params["graph"], operation.name, envelope)
    return None if header is None else RequestKey.parse(header, *described)


def _answer(result: Any) -> Response:
    packed = pack(result)
    if packed.rows is None or packed.rows.num_rows <= _ROWS_AT_ONCE_MAX:
        # Made in the thread of the call: each piece of a stream costs a thread and a packet.
        return Response(b"".join(packed.pieces()), media_type=MEDIA_TYPE)
    return stream_arrow(packed.pieces(), packed.size, MEDIA_TYPE)


def _handle(call: GraphCall, envelope: Mapping[str, Any]) -> Graph:
    """The handle that a client has: on its branch or commit, and read-only if that is."""
    named = envelope.get("actor")
    if named is not None and named != call.actor:
        who = "nobody" if call.actor is None else call.actor
        message = f"this request acts as {who}, and not as {str(named)[:100]!r}"
        hint = "the token says who acts: leave the actor out, or use another token"
        raise NotAllowedError(message, hint=hint, code=ErrorCode.FORBIDDEN)
    target = _target(envelope)
    read_only = envelope.get("read_only") is True
    if target == Target() and not read_only:
        return call.graph
    return call.service.handle_at(call.graph, target, read_only=read_only)


def _target(envelope: Mapping[str, Any]) -> Target:
    """What a client's handle reads, with names and numbers that were checked."""
    target = from_document(envelope.get("target"), only=PLAIN)
    if target is None:
        return Target()
    if not isinstance(target, Target):
        raise _unfitting_error(why="the target is not valid")
    return target.validated()


def _arguments(envelope: Mapping[str, Any]) -> dict[str, Any]:
    arguments = from_document(envelope.get("arguments") or {}, only=PLAIN)
    if not isinstance(arguments, dict):
        raise _unfitting_error(why="arguments have names")
    return arguments


def _checked_arguments(operation: Operation, envelope: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call."""
    arguments = _arguments(envelope)
    if strange := own_arguments(operation) & arguments.keys():
        raise _unfitting_error(why=f"{min(strange)} is the caller's own")
    for name in operation.texts:
        given = arguments.get(name)
        is_point = operation.name == "schema.diff" and isinstance(given, str)
        if isinstance(given, Source) or given is None or (is_point and not given.endswith(".pg")):
            continue
        raise _unfitting_error(why=f"{name} has to be a text with its name")
    key = str(arguments.get("key", ""))
    if operation.name in ("settings.set", "settings.unset") and key.endswith(_GUARDED):
        message = f"{key} is set where the graph is stored, and not through a server"
        hint = "it says where the server sends texts, and with which of its secrets"
        raise NotAllowedError(message, hint=hint, code=ErrorCode.FORBIDDEN)
    return arguments


def _limits(request: Request, operation: Operation, envelope: Mapping[str, Any]) -> dict[str, Any]:
    """What a query may spend: as envelope, and at most as the server allows."""
    names = _SPENDS.get(operation.name, ())
    if not names:
        return {}
    arguments = _arguments(envelope)
    given = {name: arguments.get(name) for name in names}
    return {name: limit for name, limit in budget_of(request, **given).items() if name in names}


def _require_fitting(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    try:
        _signature(function).bind(None, **arguments)
    except TypeError as cause:
        raise _unfitting_error(why=cause) from cause


def _unfitting_error(*, why: object) -> InvalidInputError:
    message = f"the call does not fit: {why}"
    return InvalidInputError(message, hint="use the same release of Omnigraph on both sides")
