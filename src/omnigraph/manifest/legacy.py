"""Legacy lineage: formats before stamp 4 kept it in separate datasets beside the manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from omnigraph.clock import encode_ulid
from omnigraph.manifest import schemas
from omnigraph.manifest.layout import LEGACY_ACTORS, LEGACY_COMMITS
from omnigraph.manifest.rows import corruption_error
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.storage.store import Store


def commits(store: Store, branch: BranchName) -> tuple[Commit, ...]:
    """Every commit in the legacy lineage of a branch, oldest first.

    A missing dataset is not an error: a graph may have been written before it had lineage, or
    actors; without lineage it has one commit.

    Raises:
        StorageError: a legacy dataset exists but cannot be read.
    """
    digest = schemas.read_text(store.objects).digest
    if not store.tables.exists(LEGACY_COMMITS):
        return (_placeholder_commit(digest),)
    actors = _actors(store)
    table = store.tables.open_latest(LEGACY_COMMITS, ref=branch.legacy_ref).read()
    history = [
        Commit(
            commit_id=CommitId(row["graph_commit_id"]),
            branch=BranchName(row["manifest_branch"] or MAIN),
            manifest_version=int(row["manifest_version"]),
            parent=_optional(row["parent_commit_id"]),
            merged_parent=_optional(row["merged_parent_commit_id"]),
            actor=actors.get(row["graph_commit_id"]),
            created_at=row["created_at"].replace(tzinfo=UTC),
            operation=OperationKind.LEGACY,
            message=None,
            schema_digest=digest,
        )
        for row in table.to_pylist()
    ]
    return tuple(sorted(history, key=_age))


def _placeholder_commit(digest: str) -> Commit:
    """The only commit of a graph that was written before graphs had any lineage.

    The same on every branch and for every reader, so that branches share it as their base.
    """
    seed = hashlib.sha256(f"unrecorded history of {digest}".encode()).digest()
    return Commit(
        commit_id=CommitId(encode_ulid(int.from_bytes(seed[:10]))),
        branch=MAIN,
        manifest_version=1,
        parent=None,
        merged_parent=None,
        actor=None,
        created_at=datetime.fromtimestamp(0, UTC),
        operation=OperationKind.LEGACY,
        message="what happened before this was not recorded",
        schema_digest=digest,
    )


def head(history: Iterable[Commit], *, version: int) -> Commit:
    """The commit that a manifest version shows: the newest one not above it.

    Two commits may have one version after a crash of an old release; the choice between them is
    arbitrary but always the same.

    Raises:
        StorageError: there is none, so the graph never had a first commit.
    """
    candidates = [commit for commit in history if commit.manifest_version <= version]
    if not candidates:
        message = f"the graph has no commit at or before manifest version {version}"
        raise corruption_error(message)
    return max(candidates, key=_age)


def _actors(store: Store) -> dict[str, str]:
    if not store.tables.exists(LEGACY_ACTORS):
        return {}
    columns = ["graph_commit_id", "actor_id"]
    # The actors' dataset was never branched: main's newest version has all of them.
    table = store.tables.open_latest(LEGACY_ACTORS, ref=None).read(columns)
    ids, actors = (table[name].to_pylist() for name in columns)
    return dict(zip(ids, actors, strict=True))


def _optional(text: str | None) -> CommitId | None:
    return CommitId(text) if text else None


def _age(commit: Commit) -> tuple[int, object, CommitId]:
    return commit.manifest_version, commit.created_at, commit.commit_id
