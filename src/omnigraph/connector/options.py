"""The options of a read or a write, and the type or the query that they pin to one commit.

A pinned type or query is a small value that pickles: the address of a table, or a commit and a
query; never a graph, a session or a handle. Spark passes it from the planner to executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from omnigraph.clock import SystemClock
from omnigraph.connector.selections import select_columns, select_rows
from omnigraph.errors import InvalidParameterError
from omnigraph.limits import CONNECTOR_PARALLELISM
from omnigraph.manifest.points import Points
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import OperationKind, require_actor, require_message
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.policy.actions import Action
from omnigraph.policy.authority import Access
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.store import Store
from omnigraph.storage.tables import TableAddress
from omnigraph.transaction.view import view_at
from omnigraph.transaction.writes import WriteRequest

_OPTIONS: Final = (
    "graph", "path", "branch", "commit", "version", "query", "params", "name", "parallelism",
    "pushdown", "columns", "where", "mode", "actor", "message", "policy",
    "onduplicate", "orderby",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A commit of a graph, and who reads it.

    Attributes:
        named: What the caller named it by: a branch, a commit or a tag.
        branch: The branch on which its types are.
        owner: The branch whose readers may see it: for a commit, the one that it was made on.
    """

    graph: str
    commit_id: CommitId
    named: str
    branch: BranchName
    owner: BranchName
    access: Access

    def require_readable(self, types: Iterable[str]) -> None:
        """Refuse a read that the policy does not allow."""
        authority = self.access.authority(self.graph)
        with authority.conceal(self.named):
            authority.require_visible(self.owner)
        authority.require(Action.READ, branch=self.branch, types=sorted(types))


@dataclass(frozen=True, slots=True)
class PinnedType:
    """A type's rows at one commit.

    Attributes:
        columns: Those that are declared, in this order.
        filters: In Lance's syntax; rows pass all of them.
        pushes_filters: Whether Spark may add filters of its own.
    """

    place: Place
    type: SchemaType
    address: TableAddress
    parallelism: int
    pushes_filters: bool
    columns: tuple[str, ...]
    filters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PinnedQuery:
    """A query's result at one commit; `now` is the same instant in all its tasks."""

    place: Place
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

    Whether it may be read is asked when it is (`Place.require_readable`).
    """
    given = by_name(options)
    unknown = sorted(given.keys() - set(_OPTIONS))
    if unknown:
        message = f"{unknown[0]!r} is not a valid option"
        raise InvalidParameterError(message, hint=f"options are {', '.join(_OPTIONS)}")
    if "graph" not in given:
        message = "the option graph is missing"
        raise InvalidParameterError(message, hint='.option("graph", "graph.omni")')
    store = Store.open(given["graph"])
    place, snapshot = _find_place(store, given)
    if ("query" in given) == ("path" in given):
        message = "give either a type or the option query"
        raise InvalidParameterError(
            message, hint='.load("Person"), or .option("query", ...).load()'
        )
    if "query" in given:
        return PinnedQuery(
            place,
            given["query"],
            given.get("name"),
            given.get("params", "{}"),
            SystemClock().now(),
        )
    view = view_at(store, Catalogs(store.objects), snapshot)
    type_ = view.catalog.type_named(given["path"])
    parallelism = read_number(given, "parallelism") or CONNECTOR_PARALLELISM
    address = view.data.table(type_.table_key).address
    pushes_filters = read_flag(given, "pushdown")
    columns, where = given.get("columns"), given.get("where")
    return PinnedType(
        place,
        type_,
        address,
        parallelism,
        pushes_filters,
        columns=_select_columns(type_, columns),
        filters=() if where is None else select_rows(type_, where),
    )


def _select_columns(type_: SchemaType, text: str | None) -> tuple[str, ...]:
    if text is None:
        return tuple(table_schema(type_).names)
    names = tuple(name.strip() for name in text.split(","))
    return select_columns(type_, names)


def read_access(given: Mapping[str, str]) -> Access:
    """Who acts, and under which policy."""
    return Access.parse(given.get("policy"), require_actor(given.get("actor")))


def read_request(given: Mapping[str, str]) -> WriteRequest:
    """The commit that the options of a write ask for."""
    return WriteRequest(
        OperationKind.LOAD,
        BranchName.parse(given.get("branch", MAIN)),
        actor=require_actor(given.get("actor")),
        message=require_message(given.get("message")),
    )


def _find_place(store: Store, given: Mapping[str, str]) -> tuple[Place, Snapshot]:
    access, uri, commit = read_access(given), store.root.uri, given.get("commit")
    named = commit or given.get("branch", MAIN)
    with access.authority(uri).conceal(named):
        snapshot = _find_snapshot(Manifest(store), given)
    head, branch = snapshot.head, snapshot.branch
    owner = branch if commit is None else head.branch
    return Place(uri, head.commit_id, named, branch, owner, access), snapshot


def _find_snapshot(manifest: Manifest, given: Mapping[str, str]) -> Snapshot:
    branch, commit, version = (
        given.get("branch"),
        given.get("commit"),
        read_number(given, "version"),
    )
    if commit is not None:
        if branch is not None or version is not None:
            message = "give either a commit, or a branch and a version"
            raise InvalidParameterError(message, name="commit")
        return Points(manifest).at(commit)
    name = MAIN if branch is None else BranchName.parse(branch)
    return manifest.current(name) if version is None else manifest.at_version(name, version)


def read_number(given: Mapping[str, str], name: str) -> int | None:
    """An option that is a positive number; None without it."""
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        message = f"the option {name} is {text!r}, and must be a positive whole number"
        raise InvalidParameterError(message, name=name)
    return int(text)


def read_flag(given: Mapping[str, str], name: str) -> bool:
    """An option that is true or false; false without it."""
    text = given.get(name, "false").lower()
    if text not in ("true", "false"):
        message = f"the option {name} is {text!r}, and must be true or false"
        raise InvalidParameterError(message, name=name)
    return text == "true"
