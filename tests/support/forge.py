"""Forges graphs of formats 1 to 3, written with Lance directly as their releases wrote them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import lance
import pyarrow as pa

from omnigraph.clock import encode_ulid
from omnigraph.manifest.layout import (
    LEGACY_ACTORS,
    LEGACY_COMMITS,
    MANIFEST,
    SCHEMA_TEXT,
    STAMP,
    manifest_schema,
)
from omnigraph.model.ids import CommitId
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.parser import parse_schema
from tests.support.publishing import SCHEMA

DRAFT: Final = "review/old"
STALE_RUNS: Final = ("__run__01", "__run__02")

_COMMITS: Final = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("manifest_branch", pa.string()),
        pa.field("manifest_version", pa.uint64(), nullable=False),
        pa.field("parent_commit_id", pa.string()),
        pa.field("merged_parent_commit_id", pa.string()),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)
_ACTORS: Final = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("actor_id", pa.string(), nullable=False),
    ]
)
_EPOCH: Final = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ForgedGraph:
    """A legacy graph, and its expected content.

    Attributes:
        main: Main's commits, oldest first, each with its actor.
        draft: The commits the draft branch added, oldest first.
    """

    uri: str
    main: tuple[tuple[CommitId, str | None], ...]
    draft: tuple[tuple[CommitId, str | None], ...]


def forge(
    root: Path,
    *,
    stamp: int,
    depth: int = 3,
    branched: bool = True,
    lineage: bool = True,
    counted: bool = True,
) -> ForgedGraph:
    """Write a graph of an old format: `depth` commits on main, two more on a branch of it.

    Its tables are empty, and its manifest counts rows in them, or has no counts.

    Stamps below 3 also get the staging refs that runs left before there was a sweep.
    """
    root.mkdir(parents=True)
    (root / SCHEMA_TEXT).write_text(SCHEMA)
    manifest = _manifest(root, stamp, counted=counted)
    commits = _Commits(root, lineage=lineage)
    commits.add(None, manifest.version, actor="founder")
    for number in range(1, depth):
        manifest = _publish(manifest, number if counted else None)
        commits.add(None, manifest.version, actor="ada" if number % 2 else None)
    main = tuple(commits.known)
    if stamp < 3:
        for name in STALE_RUNS:
            manifest.create_branch(name, manifest.version)
    if branched:
        draft = manifest.create_branch(DRAFT, manifest.version)
        commits.branch(DRAFT)
        for number in (depth, depth + 1):
            draft = _publish(draft, number if counted else None)
            commits.add(DRAFT, draft.version, actor="mina")
    return ForgedGraph(str(root), main, tuple(commits.known[len(main) :]))


class _Commits:
    def __init__(self, root: Path, *, lineage: bool) -> None:
        self.known: list[tuple[CommitId, str | None]] = []
        self._lineage = lineage
        self._commits = str(root / LEGACY_COMMITS)
        self._actors = str(root / LEGACY_ACTORS)
        self._ref: str | None = None

    def branch(self, name: str) -> None:
        if self._lineage:
            lance.dataset(self._commits).create_branch(name)
            self._ref = name

    def add(self, branch: str | None, version: int, *, actor: str | None) -> None:
        if not self._lineage:
            return
        number = len(self.known)
        commit_id = CommitId(encode_ulid((number + 1) << 80))
        row = {
            "graph_commit_id": commit_id,
            "manifest_branch": branch,
            "manifest_version": version,
            "parent_commit_id": self.known[-1][0] if self.known else None,
            "merged_parent_commit_id": None,
            "created_at": _EPOCH + timedelta(microseconds=number),
        }
        self.known.append((commit_id, actor))
        rows = pa.Table.from_pylist([row], schema=_COMMITS)
        target: Any = self._commits
        if self._ref:
            target = lance.dataset(self._commits).checkout_version((self._ref, None))
        lance.write_dataset(rows, target, mode="create" if number == 0 else "append")
        if actor is not None:
            actors = pa.Table.from_pylist(
                [{"graph_commit_id": commit_id, "actor_id": actor}], schema=_ACTORS
            )
            lance.write_dataset(actors, self._actors, mode="create" if number == 0 else "append")


def _manifest(root: Path, stamp: int, *, counted: bool) -> lance.LanceDataset:
    rows = []
    for number, type_ in enumerate(parse_schema(SCHEMA).types):
        key = type_.table_key
        location = f"{key.kind.folder}/old-{number}"
        lance.write_dataset(
            table_schema(type_).empty_table(), str(root / location), enable_stable_row_ids=True
        )
        rows.append(
            {
                "object_id": f"table:old-{number}",
                "object_type": "table",
                "table_key": str(key),
                "location": location,
                "table_version": 1,
                "row_count": 0 if counted else None,
            }
        )
    schema = manifest_schema(stamp)
    if stamp < 2:
        # The first format had neither a stamp nor the annotation.
        schema = pa.schema([field.remove_metadata() for field in schema])
    assert (STAMP.encode() in (schema.metadata or {})) is (stamp >= 2)
    table = pa.Table.from_pylist(rows, schema=schema)
    return lance.write_dataset(table, str(root / MANIFEST), enable_stable_row_ids=True)


def _publish(manifest: lance.LanceDataset, count: int | None) -> lance.LanceDataset:
    """Old releases updated rows in place, which leaves several fragments and deletions."""
    count_text = "NULL" if count is None else str(count)
    manifest.update({"row_count": count_text}, where="table_key = 'node:Person'")
    return manifest
