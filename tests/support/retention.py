"""Oracles for cleanups, which know nothing of ours: what commits read, and which files are named.

Files are judged by Lance's own metadata of each version, read one by one.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import lance

import omnigraph
from omnigraph.errors import CommitLetGoError
from omnigraph.graph import Graph
from omnigraph.storage.store import Store

LET_GO: Final = "let go"


def digests(uri: str) -> dict[str, str]:
    """By commit, a digest of all its rows as a fresh reader sees them, or `LET_GO`."""
    graph = omnigraph.open(uri, read_only=True)
    return {commit.commit_id: digest(graph, commit.commit_id) for commit in graph.commits.every()}


def digest(graph: Graph, commit_id: str) -> str:
    """A digest of all rows at a commit, or `LET_GO`."""
    try:
        snapshot = graph.snapshot(commit=commit_id)
    except CommitLetGoError:
        return LET_GO
    tables = Store.open(graph.uri).tables
    rows = {
        str(key): sorted(map(repr, tables.open_pin(pin).read().to_pylist()))
        for key, pin in snapshot.pins.items()
    }
    return sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def tree(uri: str) -> dict[str, int]:
    """Every file of a graph on this disk, and its size."""
    root = Path(uri)
    return {
        str(path.relative_to(root)): path.stat().st_size
        for path in root.rglob("*")
        if path.is_file()
    }


@dataclass(frozen=True)
class _Named:
    """The names of files that versions name, without their folders: they are unique."""

    data: set[str]
    deletions: set[str]
    indexes: set[str]
    transactions: set[str]


def unnamed_files(uri: str) -> set[str]:
    """The files of tables that no version names, and the versions that no commit reads.

    A branch reads the newest version of its ref of the manifest, and others by their numbers.
    """
    graph = omnigraph.open(uri, read_only=True)
    pinned: set[tuple[str, str | None, int]] = set()
    kept = {commit_id for commit_id, found in digests(uri).items() if found != LET_GO}
    for branch in graph.branches.list():
        ref = graph.snapshot(branch=branch).ref
        handle = dict(_refs(uri, "__manifest"))[ref]
        for version in (each["version"] for each in handle.version_refs()):
            if graph.snapshot(branch=branch, version=version).head.commit_id in kept:
                pinned.add(("__manifest", ref, version))
    for commit in graph.commits.every():
        try:
            snapshot = graph.snapshot(commit=commit.commit_id)
        except CommitLetGoError:
            continue
        pinned.add(("__manifest", snapshot.ref, snapshot.manifest_version))
        pinned |= {(pin.location, pin.ref, pin.version) for pin in snapshot.pins.values()}
    found: set[str] = set()
    for location in _locations(uri):
        named = _Named(set(), set(), set(), set())
        for ref, handle in _refs(uri, location):
            versions = [each["version"] for each in handle.version_refs()]
            for version in versions:
                is_newest = location.startswith("_") and version == max(versions)
                if not is_newest and (location, ref, version) not in pinned:
                    found.add(f"{location}@{ref} v{version}")
                _collect(handle.checkout_version(version), named)
        found |= set(_leftovers(uri, location, named))
    return found


def _locations(uri: str) -> Iterator[str]:
    yield "__manifest"
    for kind in ("nodes", "edges"):
        yield from (f"{kind}/{path.name}" for path in Path(uri, kind).glob("*"))


def _refs(uri: str, location: str) -> Iterator[tuple[str | None, lance.LanceDataset]]:
    main = lance.dataset(str(Path(uri, location)))
    yield None, main
    folder = Path(uri, location, "tree")
    for versions in folder.rglob("_versions"):
        ref = str(versions.parent.relative_to(folder))
        yield ref, main.checkout_version((ref, None))


def _collect(version: lance.LanceDataset, named: _Named) -> None:
    for fragment in version.get_fragments():
        named.data.update(Path(file.path).stem for file in fragment.metadata.files)
        if (deletion := fragment.metadata.deletion_file) is not None:
            named.deletions.add(Path(deletion.path(fragment.fragment_id)).name)
    for index in version.describe_indices():
        named.indexes.update(segment.uuid for segment in index.segments)
    try:
        transaction = version.read_transaction(version.version)
    except TypeError:
        return
    if transaction is not None:
        named.transactions.add(f"{transaction.read_version}-{transaction.uuid}.txn")


def _leftovers(uri: str, location: str, named: _Named) -> Iterator[str]:
    for path in Path(uri, location).rglob("*"):
        parts = path.relative_to(uri).parts
        if not path.is_file():
            continue
        kind = next((part for part in parts if part in _KINDS), None)
        names = getattr(named, _KINDS[kind]) if kind else None
        if kind == "_versions":
            if path.name.startswith("d"):
                yield str(path.relative_to(uri))
        elif names is not None and kind is not None:
            name = Path(parts[parts.index(kind) + 1])
            if (name.stem if kind == "data" else name.name) not in names:
                yield str(path.relative_to(uri))


_KINDS: Final[Mapping[str, str]] = {
    "_versions": "data",
    "data": "data",
    "_deletions": "deletions",
    "_indices": "indexes",
    "_transactions": "transactions",
}
