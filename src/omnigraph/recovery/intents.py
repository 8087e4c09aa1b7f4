"""Intents: what a writer is about to do, and their encoding as sidecars."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from omnigraph.manifest.drafts import (
    AddParent,
    Change,
    CommitDraft,
    DropTable,
    PinTable,
    RecordBatch,
    SetSchema,
)
from omnigraph.manifest.requirements import BranchIs, HeadIs, Requirement, SchemaIs, StreamAt
from omnigraph.manifest.rows import pin_row, read_pin, read_tombstone, tombstone_row
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.streams import StreamBatch
from omnigraph.model.tables import TableKey
from omnigraph.recovery.owners import Owner

SCHEMA_VERSION: Final = 2

_LATER: Final = ("registrations", "tombstones", "schema_files")
"""Fields that later releases write. Acting on the others alone would do half of their work."""


@dataclass(frozen=True, slots=True)
class ForkSource:
    """The ref that a branch's own ref of a table was created from; None is main's."""

    ref: str | None


@dataclass(frozen=True, slots=True)
class TableIntent:
    """One table head that is about to move.

    Attributes:
        ref: The Lance ref whose head it is; None is the table's main.
        expected_version: The version that the manifest pinned when the write was planned.
        post_commit_pin: The head's version once the write is applied.
        confirmed_version: The head's version after all heads had moved; recorded by merges.
        forks_from: Set if `ref` was created for this write: the ref that the manifest still pins.
    """

    key: TableKey
    location: str
    ref: str | None
    expected_version: int
    post_commit_pin: int
    confirmed_version: int | None = None
    forks_from: ForkSource | None = None

    @property
    def pinned_ref(self) -> str | None:
        """The ref that the manifest pinned the table on when the write was planned."""
        return self.ref if self.forks_from is None else self.forks_from.ref


@dataclass(frozen=True, slots=True)
class Intent:
    """All that recovery needs to finish or undo one write.

    Attributes:
        draft: The commit that the write makes. Pins that only move are left out: `tables` has them.
        tables: The heads that it moves.
        locks: Tables that it does not move, and that no other write may move meanwhile.
        lease_until: Until then no other process touches it, unless its own process is gone.
        resolves: For a recovery, the operation it resolves.
        owner: The process that runs it.
    """

    operation_id: OperationId
    draft: CommitDraft
    started_at: datetime
    tables: tuple[TableIntent, ...] = ()
    locks: tuple[TableKey, ...] = ()
    lease_until: datetime | None = None
    resolves: OperationId | None = None
    owner: Owner | None = None

    @property
    def branch(self) -> BranchName:
        """The branch that it writes to."""
        return self.draft.branch

    @property
    def kind(self) -> OperationKind:
        """The kind of write."""
        return self.draft.kind

    @property
    def schema_digest(self) -> str | None:
        """The schema that the write was planned with."""
        required = (each.digest for each in self.draft.requires if isinstance(each, SchemaIs))
        return next(required, None)

    @property
    def merged_parent(self) -> CommitId | None:
        """The commit that a merge brings in."""
        merged = self.draft.the(AddParent)
        return None if merged is None else merged.commit_id

    @property
    def named_commits(self) -> frozenset[CommitId]:
        """The commits that it names: its own, the one that it merges, the one that it requires."""
        heads = (each.rows_from for each in self.draft.requires if isinstance(each, HeadIs))
        named = (self.draft.commit_id, self.merged_parent, *heads)
        return frozenset(commit_id for commit_id in named if commit_id is not None)

    def overlaps(self, other: Intent) -> bool:
        """Whether the two must not run at the same time.

        Writes with one commit id are attempts of one request (`transaction.requests`).
        """
        if self.draft.commit_id == other.draft.commit_id:
            return True
        if self.branch != other.branch:
            return False
        return not self._claims().isdisjoint(other._claims())

    def _claims(self) -> frozenset[TableKey | str]:
        # By location, too: a table's key changes when its type is renamed.
        keys = (*(table.key for table in self.tables), *self.locks)
        return frozenset((*keys, *(table.location for table in self.tables)))


class UnreadableIntentError(ValueError):
    """A sidecar cannot be decoded, or this release cannot act on it."""


class NewerIntentError(UnreadableIntentError):
    """A sidecar is intact, and a newer release wrote it."""


def encode(intent: Intent) -> bytes:
    """The intent as a sidecar."""
    draft, owner = intent.draft, intent.owner
    conditions = {type(requirement): requirement for requirement in draft.requires}
    head, stream = conditions.get(HeadIs), conditions.get(StreamAt)
    record = {
        "schema_version": SCHEMA_VERSION,
        "operation_id": intent.operation_id,
        "writer_kind": draft.kind,
        "branch": draft.branch,
        "branch_ref": draft.ref,
        "actor": draft.actor,
        "message": draft.message,
        "started_at": intent.started_at.isoformat(),
        "lease_until": intent.lease_until and intent.lease_until.isoformat(),
        "commit_id": draft.commit_id,
        "merge_source_commit_id": intent.merged_parent,
        "tables": [_encode_table(table) for table in intent.tables],
        "guards": [str(key) for key in intent.locks],
        "schema_digest": intent.schema_digest,
        "schema_intent": _encode_schema(draft),
        "expect_head": head.rows_from if isinstance(head, HeadIs) else None,
        "resolves": intent.resolves,
        "owner": owner and asdict(owner),
        "stream": _encode_stream(draft, stream) if isinstance(stream, StreamAt) else None,
    }
    return json.dumps(record, indent=1).encode()


def _encode_table(table: TableIntent) -> dict[str, object]:
    return {
        "table_key": str(table.key),
        "location": table.location,
        "table_branch": table.ref,
        "expected_version": table.expected_version,
        "post_commit_pin": table.post_commit_pin,
        "confirmed_version": table.confirmed_version,
        "forks_from": table.forks_from and (table.forks_from.ref or MAIN),
    }


def _encode_schema(draft: CommitDraft) -> dict[str, object] | None:
    """What the write publishes besides heads that move, if it changes the schema."""
    schema = draft.the(SetSchema)
    if schema is None:
        return None
    dropped = [change.tombstone for change in draft.changes if isinstance(change, DropTable)]
    return {
        "digest": schema.digest,
        "pins": [pin_row(pin) for pin in draft.pins],
        "tombstones": [tombstone_row(tombstone) for tombstone in dropped],
    }


def _encode_stream(draft: CommitDraft, before: StreamAt) -> dict[str, object]:
    recorded = draft.the(RecordBatch)
    assert recorded is not None, "it was planned after another batch"
    facts = recorded.batch.to_facts()
    return {**facts, "after": before.commit_id, "after_batch": before.number}


def decode(data: bytes) -> Intent:
    """The intent that a sidecar holds."""
    try:
        record = json.loads(data)
        version = record["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        message = "it is not a sidecar"
        raise UnreadableIntentError(message) from cause
    if type(version) is not int or version < SCHEMA_VERSION:
        message = f"its schema is {version!r}, which no release writes"
        raise UnreadableIntentError(message)
    if version > SCHEMA_VERSION:
        message = f"its schema is {version!r}, and this release reads up to {SCHEMA_VERSION}"
        raise NewerIntentError(message)
    if later := [name for name in _LATER if record.get(name)]:
        message = f"it has {', '.join(later)}, which this release does not know how to finish"
        raise NewerIntentError(message)
    try:
        return _decode(record)
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        message = f"it is incomplete: {cause!r}"
        raise UnreadableIntentError(message) from cause


def _decode(record: Mapping[str, Any]) -> Intent:
    lease, owner, resolves = (record.get(key) for key in ("lease_until", "owner", "resolves"))
    draft = CommitDraft(
        BranchName.parse(_text(record["branch"])),
        CommitId.parse(_text(record["commit_id"])),
        OperationKind(record["writer_kind"]),
        _text_or_none(record.get("actor")),
        _text_or_none(record.get("message")),
        changes=tuple(_decode_changes(record)),
        requires=tuple(_decode_requirements(record)),
    )
    return Intent(
        operation_id=OperationId(_text(record["operation_id"])),
        draft=draft,
        started_at=datetime.fromisoformat(record["started_at"]),
        tables=tuple(map(_decode_table, _items(record["tables"]))),
        locks=tuple(map(TableKey.parse, _items(record.get("guards", [])))),
        lease_until=None if lease is None else _instant(lease),
        resolves=None if resolves is None else OperationId(_text(resolves)),
        owner=None if owner is None else _decode_owner(owner),
    )


def _decode_changes(record: Mapping[str, Any]) -> Iterator[Change]:
    if (schema := record.get("schema_intent")) is not None:
        yield from (PinTable(read_pin(row)) for row in _items(schema["pins"]))
        yield from (DropTable(read_tombstone(row)) for row in _items(schema["tombstones"]))
        yield SetSchema(_text(schema["digest"]))
    if (source := record.get("merge_source_commit_id")) is not None:
        yield AddParent(CommitId.parse(_text(source)))
    if (stream := record.get("stream")) is not None:
        yield RecordBatch(StreamBatch.from_facts(stream))


def _decode_requirements(record: Mapping[str, Any]) -> Iterator[Requirement]:
    yield BranchIs(_text_or_none(record.get("branch_ref")))
    if (digest := _text_or_none(record.get("schema_digest"))) is not None:
        yield SchemaIs(digest)
    if (head := record.get("expect_head")) is not None:
        # The sidecar has only the commit that made the rows, which decides.
        expected = CommitId.parse(_text(head))
        yield HeadIs(expected, expected)
    if (stream := record.get("stream")) is not None:
        after, number = stream["after"], stream.get("after_batch")
        yield StreamAt(
            StreamBatch.from_facts(stream).stream,
            None if after is None else CommitId.parse(_text(after)),
            None if number is None else _number(number),
        )


def _decode_table(record: Mapping[str, Any]) -> TableIntent:
    confirmed, source = record.get("confirmed_version"), _text_or_none(record.get("forks_from"))
    return TableIntent(
        key=TableKey.parse(_text(record["table_key"])),
        location=_text(record["location"]),
        ref=_text_or_none(record.get("table_branch")),
        expected_version=_number(record["expected_version"]),
        post_commit_pin=_number(record["post_commit_pin"]),
        confirmed_version=None if confirmed is None else _number(confirmed),
        forks_from=None if source is None else ForkSource(None if source == MAIN else source),
    )


def _decode_owner(record: Mapping[str, Any]) -> Owner:
    return Owner(_text(record["host"]), _number(record["pid"]), _number(record["started"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        message = f"{value!r} is not a text"
        raise TypeError(message)
    return value


def _items(value: object) -> list[Any]:
    if not isinstance(value, list):
        message = f"{value!r} is not a list"
        raise TypeError(message)
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _number(value: object) -> int:
    if type(value) is not int:
        message = f"{value!r} is not a number"
        raise TypeError(message)
    return value


def _instant(value: object) -> datetime:
    instant = datetime.fromisoformat(_text(value))
    if instant.tzinfo is None:
        message = f"{value!r} names no time zone"
        raise ValueError(message)
    return instant
