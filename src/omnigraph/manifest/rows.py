"""Manifest rows: the object types, and their encoding and decoding."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.errors import ErrorCode, InvalidInputError, StorageError
from omnigraph.manifest.format import CURRENT
from omnigraph.manifest.layout import manifest_schema
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.ids import CommitId, TableId
from omnigraph.model.names import BranchName
from omnigraph.model.streams import StreamBatch, StreamRecord
from omnigraph.model.tables import Fork, TableKey, TablePin, Tombstone

Row: TypeAlias = "dict[str, Any]"


class ObjectType(StrEnum):
    """What a manifest row describes."""

    TABLE = "table"
    TOMBSTONE = "table_tombstone"
    HEAD = "graph_head"
    COMMIT = "graph_commit"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Contents:
    """The decoded contents of a set of manifest rows.

    Attributes:
        head: The newest commit.
        recent: The newest commits, oldest first, the head among them.
        ended_ref: The ref whose branch ended with these contents. A branch that was created from
            them is carried by another ref, and has not ended.
        streams: The newest batch of each stream, also of those of the branch it was created from.
    """

    pins: tuple[TablePin, ...]
    tombstones: tuple[Tombstone, ...]
    head: CommitId | None
    recent: tuple[Commit, ...]
    ended_ref: str | None = None
    streams: tuple[StreamRecord, ...] = ()


def encode_contents(contents: Contents, branch: BranchName) -> pa.Table:
    """The rows of a manifest's first fragment."""
    head = [] if contents.head is None else [_head_row(branch, contents)]
    return _table(
        [
            *map(pin_row, contents.pins),
            *map(tombstone_row, contents.tombstones),
            *head,
            *map(_stream_row, contents.streams),
            *map(_commit_row, contents.recent),
        ]
    )


def encode_commits(commits: Iterable[Commit]) -> pa.Table:
    """The rows of a page of lineage."""
    return _table(map(_commit_row, commits))


def join_pages(*pages: pa.Table) -> pa.Table:
    """Join several pages of rows into one."""
    schema = manifest_schema(CURRENT)
    return pa.concat_tables([page.cast(schema) for page in pages]).combine_chunks()


def decode(rows: pa.Table, *, uri: str) -> Contents:
    """Decode manifest rows."""
    pins, tombstones, heads, commits, ended, streams = [], [], [], [], [], []
    uncounted: list[Row] = []
    for row in rows.to_pylist():
        try:
            match ObjectType(row["object_type"]):
                case ObjectType.TABLE:
                    pins.append(read_pin(row))
                    uncounted += [row] if row["row_count"] is None else []
                case ObjectType.TOMBSTONE:
                    tombstones.append(read_tombstone(row))
                case ObjectType.HEAD:
                    facts = json.loads(row["metadata"])
                    heads.append(CommitId.parse(facts["commit"]))
                    ended.append(facts.get("ended"))
                case ObjectType.COMMIT:
                    commits.append(_commit(row))
                case ObjectType.STREAM:
                    streams.append(_stream(row))
        except (ValueError, KeyError, TypeError, AttributeError, InvalidInputError) as cause:
            message = f"the manifest of {uri} has an invalid row: {row}"
            raise corruption_error(message) from cause
    if len(heads) > 1:
        message = f"the manifest of {uri} has {len(heads)} heads, and must have one"
        raise corruption_error(message)
    if uncounted:
        message = f"the manifest of {uri} does not count the rows of a table: {uncounted[0]}"
        raise corruption_error(message)
    head, ended_ref = (heads[0], ended[0]) if heads else (None, None)
    return Contents(tuple(pins), tuple(tombstones), head, tuple(commits), ended_ref, tuple(streams))


def corruption_error(message: str) -> StorageError:
    """The error for a manifest that contradicts itself."""
    hint = "restore the graph's files from a backup, and report how this came about"
    return StorageError(message, hint=hint, code=ErrorCode.CORRUPTED)


def _table(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=manifest_schema(CURRENT))


def pin_row(pin: TablePin) -> Row:
    """A pin as a row, all of whose values JSON can express."""
    return {
        "object_id": f"table:{pin.table_id}",
        "object_type": ObjectType.TABLE,
        "table_key": str(pin.key),
        "location": pin.location,
        "table_version": pin.version,
        "table_branch": pin.ref,
        "row_count": pin.row_count,
        "metadata": _facts_json(pin),
    }


def _facts_json(pin: TablePin) -> str | None:
    """The identity of a type, without what follows from the names, and the forks of its table.

    None if nothing is left.
    """
    identity = pin.identity
    facts = {
        "origin": None if identity.origin == pin.key.type_name else identity.origin,
        "properties": dict(identity.properties),
        "dropped": identity.dropped,
        "forks": [(fork.source, fork.version, fork.ref) for fork in pin.forks],
    }
    facts = {name: fact for name, fact in facts.items() if fact}
    return _json(facts) if facts else None


def read_pin(row: Row) -> TablePin:
    """The pin that a row describes."""
    key = TableKey.parse(row["table_key"])
    facts = json.loads(row["metadata"] or "{}")
    return TablePin(
        table_id=TableId(row["object_id"].removeprefix("table:")),
        key=key,
        location=row["location"],
        version=int(row["table_version"]),
        ref=row["table_branch"],
        row_count=int(row["row_count"] or 0),
        identity=TypeIdentity(
            facts.get("origin", key.type_name),
            facts.get("properties", {}),
            tuple(facts.get("dropped", ())),
        ),
        forks=tuple(Fork(source, version, ref) for source, version, ref in facts.get("forks", ())),
    )


def tombstone_row(tombstone: Tombstone) -> Row:
    """A tombstone as a row, all of whose values JSON can express."""
    return {
        "object_id": f"tombstone:{tombstone.table_id}",
        "object_type": ObjectType.TOMBSTONE,
        "table_key": str(tombstone.key),
        "location": tombstone.location,
        "table_version": tombstone.sealed_version,
        "table_branch": tombstone.ref,
        "metadata": _json({"origin": tombstone.origin}),
    }


def read_tombstone(row: Row) -> Tombstone:
    """The tombstone that a row describes."""
    key = TableKey.parse(row["table_key"])
    return Tombstone(
        table_id=TableId(row["object_id"].removeprefix("tombstone:")),
        key=key,
        location=row["location"],
        sealed_version=int(row["table_version"]),
        ref=row["table_branch"],
        origin=json.loads(row["metadata"] or "{}").get("origin", key.type_name),
    )


def _head_row(branch: BranchName, contents: Contents) -> Row:
    facts = {"commit": contents.head, "ended": contents.ended_ref}
    return {
        "object_id": f"graph_head:{branch}",
        "object_type": ObjectType.HEAD,
        "metadata": _json({name: fact for name, fact in facts.items() if fact is not None}),
    }


def _commit_row(commit: Commit) -> Row:
    facts = {
        "parent": commit.parent,
        "merged_parent": commit.merged_parent,
        "actor": commit.actor,
        "created_at": commit.created_at.isoformat(),
        "operation": commit.operation,
        "message": commit.message,
        "schema": commit.schema_digest,
        "ref": commit.ref,
        "generation": commit.generation,
        "same_rows_as": commit.same_rows_as,
        "stream": None if commit.stream is None else commit.stream.to_facts(),
    }
    return {
        "object_id": commit.commit_id,
        "object_type": ObjectType.COMMIT,
        "table_version": commit.manifest_version,
        "table_branch": commit.branch,
        "metadata": _json({name: fact for name, fact in facts.items() if fact is not None}),
    }


def _commit(row: Row) -> Commit:
    facts = json.loads(row["metadata"])
    parent, merged_parent = facts.get("parent"), facts.get("merged_parent")
    same_rows_as, stream = facts.get("same_rows_as"), facts.get("stream")
    return Commit(
        commit_id=CommitId.parse(row["object_id"]),
        branch=BranchName(row["table_branch"]),
        manifest_version=int(row["table_version"]),
        parent=None if parent is None else CommitId.parse(parent),
        merged_parent=None if merged_parent is None else CommitId.parse(merged_parent),
        actor=facts.get("actor"),
        created_at=datetime.fromisoformat(facts["created_at"]),
        operation=OperationKind(facts["operation"]),
        message=facts.get("message"),
        schema_digest=facts["schema"],
        ref=facts.get("ref"),
        generation=facts.get("generation"),
        same_rows_as=None if same_rows_as is None else CommitId.parse(same_rows_as),
        stream=None if stream is None else StreamBatch.from_facts(stream),
    )


def _stream_row(record: StreamRecord) -> Row:
    facts = {**record.batch.to_facts(), "commit": record.commit_id}
    if record.is_gapless:
        facts["gapless"] = True
    return {
        "object_id": f"stream:{record.batch.stream}",
        "object_type": ObjectType.STREAM,
        "table_branch": record.ref,
        "metadata": _json(facts),
    }


def _stream(row: Row) -> StreamRecord:
    facts = json.loads(row["metadata"])
    batch = StreamBatch.from_facts(facts)
    is_gapless = facts.get("gapless") is True
    return StreamRecord(batch, CommitId.parse(facts["commit"]), row["table_branch"], is_gapless)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
