"""The options of a read or a write, and the type or the query that they pin to one commit.

A pinned type or query is a small value that pickles: the address of a table, or a commit and a
query; never a graph, a session or a handle. Spark passes it from the planner to executors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from omnigraph.clock import SystemClock
from omnigraph.errors import InvalidParameterError
from omnigraph.limits import CONNECTOR_PARALLELISM
from omnigraph.manifest.points import Points
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.store import Store
from omnigraph.storage.tables import TableAddress
from omnigraph.transaction.view import view_at

_OPTIONS: Final = (
    "graph", "path", "branch", "commit", "version", "query", "params", "name", "parallelism",
    "pushdown", "mode", "actor", "message",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PinnedType:
    """A type's rows at one commit."""

    graph: str
    type: SchemaType
    address: TableAddress
    parallelism: int
    pushes_filters: bool


@dataclass(frozen=True, slots=True)
class PinnedQuery:
    """A query's result at one commit; `now` is the same instant in all its tasks."""

    graph: str
    commit_id: CommitId
    text: str
    name: str | None
    parameters: str
    now: datetime


Pinned = PinnedType | PinnedQuery


def by_name(options: Mapping[str, str]) -> dict[str, str]:
    """The options by their names in lower case: Spark ignores case, and keeps what was written."""
    return {name.lower(): value for name, value in options.items()}


def pin(options: Mapping[str, str]) -> Pinned:
    """Resolve the options of a read or a write to a type or a query at one commit.

    Raises:
        InvalidParameterError: an option is unknown, missing or ill-formed.
        NotFoundError: there is no such graph, branch, commit, tag, version or type.
    """
    given = by_name(options)
    unknown = sorted(given.keys() - set(_OPTIONS))
    if unknown:
        message = f"there is no option {unknown[0]!r}"
        raise InvalidParameterError(message, hint=f"options are {', '.join(_OPTIONS)}")
    if "graph" not in given:
        message = "the option graph is missing"
        raise InvalidParameterError(message, hint='.option("graph", "graph.omni")')
    store = Store.open(given["graph"])
    snapshot = _find_snapshot(Manifest(store), given)
    if ("query" in given) == ("path" in given):
        message = "either a type or a query is read"
        raise InvalidParameterError(
            message, hint='.load("Person"), or .option("query", ...).load()'
        )
    if "query" in given:
        return PinnedQuery(
            store.root.uri,
            snapshot.head.commit_id,
            given["query"],
            given.get("name"),
            given.get("params", "{}"),
            SystemClock().now(),
        )
    view = view_at(store, Catalogs(store.objects), snapshot)
    type_ = view.catalog.type_named(given["path"])
    parallelism = _read_number(given, "parallelism") or CONNECTOR_PARALLELISM
    address = view.data.table(type_.table_key).address
    pushes_filters = _read_flag(given, "pushdown")
    return PinnedType(store.root.uri, type_, address, parallelism, pushes_filters)


def _find_snapshot(manifest: Manifest, given: Mapping[str, str]) -> Snapshot:
    branch, commit, version = (
        given.get("branch"),
        given.get("commit"),
        _read_number(given, "version"),
    )
    if commit is not None:
        if branch is not None or version is not None:
            message = "a commit says it all: give a commit, or a branch and a version"
            raise InvalidParameterError(message, name="commit")
        return Points(manifest).at(commit)
    name = MAIN if branch is None else BranchName.parse(branch)
    return manifest.current(name) if version is None else manifest.at_version(name, version)


def _read_number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        message = f"the option {name} is {text!r}, and must be a positive whole number"
        raise InvalidParameterError(message, name=name)
    return int(text)


def _read_flag(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").lower()
    if text not in ("true", "false"):
        message = f"the option {name} is {text!r}, and must be true or false"
        raise InvalidParameterError(message, name=name)
    return text == "true"
