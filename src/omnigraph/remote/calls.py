"""Calls: an operation and its arguments become a request, and its answer the result."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final
from urllib.parse import quote

from omnigraph.changes.rows import Chunk
from omnigraph.choices import Op
from omnigraph.clock import SystemClock
from omnigraph.documents.changes import RowsRequest, read_chunks
from omnigraph.documents.operations import CallKind, Operation, own_arguments
from omnigraph.documents.results import split_line, unpack
from omnigraph.documents.values import to_document
from omnigraph.engine.budget import Cancellation
from omnigraph.errors import InvalidParameterError
from omnigraph.graph import Target
from omnigraph.lang.source import Source
from omnigraph.model.arguments import misfit_error, require_text
from omnigraph.remote.connections import Connection, Sending
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.texts import query_text, schema_text

_JSON: Final = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Handle:
    """What a remote graph is: a connection, what it reads, and whether it may write.

    Attributes:
        actor: Who has to be the actor of the token; None leaves it to the token.
    """

    connection: Connection
    target: Target
    read_only: bool = False
    actor: str | None = None

    def at(self, target: Target) -> Handle:
        """The same graph at another branch or commit."""
        return replace(self, target=target)

    def call(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        """Have the server carry out an operation, and return its result."""
        own = own_arguments(operation)
        sent = {name: value for name, value in arguments.items() if name not in own}
        for name in operation.texts:
            if sent.get(name) is not None:
                sent[name] = _text(operation, name, sent[name])
        line, rest = split_line(
            self.connection.send(
                Sending(
                    "POST",
                    f"calls/{quote(operation.name)}",
                    _kind_of(operation, arguments),
                    content=self._content(self.envelope(sent, arguments.get("actor"))),
                    headers=_JSON,
                    key=key_of(operation, arguments),
                    cancel=_cancellation(arguments.get("cancel")),
                )
            )
        )
        return unpack(line, rest, self._fetch)

    def envelope(self, arguments: Mapping[str, Any], actor: str | None) -> dict[str, Any]:
        """What every request has: the target of the handle, and the arguments."""
        envelope: dict[str, Any] = {"arguments": dict(arguments)}
        if self.target != Target():
            envelope["target"] = self.target
        if self.read_only:
            envelope["read_only"] = True
        named = self.actor if actor is None else actor
        if named is not None:
            envelope["actor"] = require_text(named, "actor")
        return envelope

    @staticmethod
    def _content(envelope: Mapping[str, Any]) -> Any:
        data = json.dumps(to_document(envelope)).encode()
        return lambda: data

    def _fetch(self, rows: RowsRequest, ops: Collection[Op]) -> Iterator[Chunk]:
        """Changed rows that were too many to be sent with their diff, as they arrive."""
        import pyarrow as pa

        arguments = {
            "before": rows.before,
            "after": rows.after,
            "type_name": rows.type_name,
            "place": rows.place,
            "ops": [str(op) for op in ops],
        }
        sending = Sending(
            "POST",
            "calls/changed_rows",
            CallKind.READ,
            content=self._content(self.envelope(arguments, None)),
            headers=_JSON,
        )
        with self.connection.stream(sending) as pieces:
            yield from read_chunks(pa.ipc.open_stream(PieceReader(pieces)))


def key_of(operation: Operation, arguments: Mapping[str, Any]) -> str | None:
    """The key of a request: the caller's, or a new one where the operation takes one."""
    given = arguments.get("key")
    if operation.kind is not CallKind.KEYED:
        return None
    return SystemClock().ulid() if given is None else require_text(given, "key")


def _kind_of(operation: Operation, arguments: Mapping[str, Any]) -> CallKind:
    # A dry run changes nothing.
    return CallKind.READ if arguments.get("dry_run") is True else operation.kind


def _cancellation(given: object) -> Cancellation | None:
    if given is None or isinstance(given, Cancellation):
        return given
    hint = "make one with omnigraph.Cancellation()"
    raise misfit_error(given, "cancel", "a Cancellation", hint=hint)


def _text(operation: Operation, name: str, given: object) -> object:
    """A text of a language, with its name in diagnostics; files are read here."""
    if operation.name == "schema.diff":
        # Branches, commits and tags are names; files are those of the caller.
        is_name = isinstance(given, str) and not given.endswith(".pg")
        return given if is_name else schema_text(_as_path(given))
    if name == "schema" and isinstance(given, Catalog):
        from omnigraph.schema.printer import print_schema

        return Source("schema", print_schema(given))
    return schema_text(given) if name == "schema" else query_text(given)


def _as_path(given: object) -> object:
    from pathlib import Path

    return Path(given) if isinstance(given, str | PathLike) else given


def refuse_key(arguments: Mapping[str, Any], what: str) -> None:
    """Refuse a key where none is taken."""
    if arguments.get("key") is not None:
        message = f"{what} takes no key"
        raise InvalidParameterError(message, name="key")


class PieceReader(io.RawIOBase):
    """Pieces of a body as a file that is read from beginning to end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Copy what has arrived, as much as fits; 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def read_line(self) -> bytes:
        """Everything up to the end of a line, and without it."""
        line = bytearray()
        while True:
            if not self._rest:
                self._rest = memoryview(next(self._pieces, b"\n"))
            end = bytes(self._rest).find(b"\n")
            if end >= 0:
                line += self._rest[:end]
                self._rest = self._rest[end + 1 :]
                return bytes(line)
            line += self._rest
            self._rest = memoryview(b"")
