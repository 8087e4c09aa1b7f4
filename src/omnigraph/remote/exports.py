"""Exports of remote graphs: written there, received in one body, and named here at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from omnigraph.clock import SystemClock
from omnigraph.documents.archives import first_member, unpack_folder
from omnigraph.documents.operations import CallKind
from omnigraph.documents.values import from_document, to_document
from omnigraph.errors import NotAllowedError
from omnigraph.export.contents import is_export
from omnigraph.export.results import ExportResult
from omnigraph.export.targets import make_target, parse_target
from omnigraph.formats.sinks import STANDARD_OUTPUT, standard_output
from omnigraph.model.arguments import require_path
from omnigraph.remote.calls import Handle, PieceReader
from omnigraph.remote.connections import Sending
from omnigraph.storage.schemes import is_remote

_SENT: Final = ("types", "format", "engine")
_LINES: Final = "graph.jsonl"
"""The name of a file that is only printed."""


def export(handle: Handle, arguments: Mapping[str, Any]) -> ExportResult:
    """Write the rows that a remote handle reads to files here."""
    target = parse_target(str(require_path(arguments["target"], "target")))
    if is_remote(target):
        message = f"{target} is in an object store, and a server writes to none"
        raise NotAllowedError(message, hint="export to a file here, or where the graph is stored")
    sent = {name: arguments[name] for name in _SENT if name in arguments}
    if target == STANDARD_OUTPUT:
        with (
            standard_output() as stream,
            _received(handle, {**sent, "target": _LINES}) as (result, archive),
        ):
            for piece in first_member(archive):
                stream.write(piece)
        return replace(result, target=STANDARD_OUTPUT, files=())
    path = Path(target).absolute()
    mark, replaces = SystemClock().ulid(), bool(arguments.get("replace", False))
    with (
        make_target(path, mark, replaces=replaces, is_ours=is_export) as place,
        _received(handle, {**sent, "target": path.name}) as (result, archive),
    ):
        _unpack(archive, place, is_folder=result.files != (path.name,))
    return replace(result, target=str(path))


@contextmanager
def _received(
    handle: Handle, sent: Mapping[str, Any]
) -> Iterator[tuple[ExportResult, PieceReader]]:
    """The result of the one export, and its files while they arrive."""
    data = json.dumps(to_document(handle.envelope(sent, None))).encode()
    sending = Sending(
        "POST",
        "calls/export",
        CallKind.READ,
        content=lambda: data,
        headers={"Content-Type": "application/json"},
    )
    with handle.connection.stream(sending) as pieces:
        reader = PieceReader(pieces)
        result = from_document(json.loads(reader.read_line()))
        assert isinstance(result, ExportResult), "that is what an export returns"
        yield result, reader


def _unpack(archive: PieceReader, place: Path, *, is_folder: bool) -> None:
    if is_folder:
        place.mkdir()
        unpack_folder(archive, place)
        return
    with place.open("wb") as file:
        for piece in first_member(archive):
            file.write(piece)
