"""A workspace: what an agent may read, and the one branch that it writes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self

from omnigraph.accessors.stored_queries import StoredQuery
from omnigraph.changes.facts import counts, hidden_facts, row_objects
from omnigraph.errors import (
    AlreadyExistsError,
    InvalidParameterError,
    NotAllowedError,
    TypeNotFoundError,
)
from omnigraph.formats.cells import plain_value
from omnigraph.model.arguments import require_number, require_text
from omnigraph.model.names import BranchName
from omnigraph.model.types import Scalar, VectorType

if TYPE_CHECKING:
    from omnigraph.remote.graph import AnyGraph

AGENT_ROWS_MAX: Final = 1_000
"""Rows that one call of an agent's tool may return: it reads all of them."""

AGENT_CHANGES_MAX: Final = 100
"""Changed rows that a diff shows to an agent; the counts are of all."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A graph as one agent uses it.

    Attributes:
        graph: A handle on the branch that the agent starts from.
        branch: The branch that everything is written to. It is created by the first write.
        writes: Whether the agent may write at all.
        limits: What each query may spend, as arguments of `Graph.query`.
    """

    graph: AnyGraph
    branch: BranchName
    writes: bool = True
    limits: Mapping[str, Any] = field(default_factory=dict)
    _creation: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def open(
        cls,
        graph: AnyGraph,
        branch: str,
        *,
        writes: bool = True,
        limits: Mapping[str, Any] | None = None,
    ) -> Self:
        """The workspace of an agent: it starts from one branch, and writes to another."""
        own = BranchName.parse(branch)
        if own.is_main or own == graph.snapshot().branch:
            message = f"agents cannot write to branch {own}, which is for reviewed changes"
            raise NotAllowedError(message, hint="name another branch to write to")
        return cls(graph, own, writes=writes, limits=limits or {})

    @property
    def base(self) -> str:
        """The branch that the agent starts from."""
        return str(self.graph.snapshot().branch)

    def reader(self, at: str | None = None) -> AnyGraph:
        """A handle on a branch, a commit or a tag; on the agent's own branch once there is one."""
        if at is not None:
            named = require_text(at, "at")
            snapshot = self.graph.point(named)
            if snapshot.branch == named:
                return self.graph.at(branch=named)
            return self.graph.at(commit=snapshot.head.commit_id)
        if self.branch in self.graph.branches.list():
            return self.graph.at(branch=self.branch)
        return self.graph

    def writer(self) -> AnyGraph:
        """A handle on the agent's branch, which is created if it does not exist."""
        if not self.writes:
            message = "this server only reads"
            raise NotAllowedError(message, hint="start it without --read-only")
        with self._creation:
            if self.branch in self.graph.branches.list():
                return self.graph.at(branch=self.branch)
            try:
                return self.graph.branches.create(self.branch)
            except AlreadyExistsError:
                # Another process of the same agent was faster.
                return self.graph.at(branch=self.branch)

    def schema(self, at: str | None = None) -> dict[str, Any]:
        """The schema as text, and the number of rows of each type."""
        reader = self.reader(at)
        snapshot = reader.snapshot()
        counts = {key.type_name: pin.row_count for key, pin in snapshot.pins.items()}
        text = reader.schema.show(commit=snapshot.head.commit_id).text
        shown = {"branch": snapshot.branch, "schema": text, "rows": counts}
        return shown | hidden_facts(snapshot.hidden)

    def query(
        self, text: str, params: Mapping[str, object] | None, at: str | None
    ) -> dict[str, Any]:
        """The rows of a read query."""
        limits = {**self.limits, "max_rows": AGENT_ROWS_MAX}
        result = self.reader(at).query(require_text(text, "query"), params, **limits)
        return {
            "commit_id": result.commit_id,
            "rows": [plain_value(row) for row in result.rows()],
            "notes": list(result.notes),
        }

    def explain(
        self, text: str, params: Mapping[str, object] | None, at: str | None
    ) -> dict[str, Any]:
        """How a query would run."""
        return {"plan": str(self.reader(at).explain(require_text(text, "query"), params))}

    def search(
        self, type_name: str, property_name: str, text: str, limit: int, at: str | None
    ) -> dict[str, Any]:
        """The rows of a type whose text, or whose meaning, is nearest to a text, best first."""
        statement = self._search_statement(
            require_text(type_name, "type"),
            require_text(property_name, "property"),
            require_number(limit, "limit"),
            at,
        )
        return self.query(statement, {"text": text}, at)

    def _search_statement(
        self, type_name: str, property_name: str, limit: int, at: str | None
    ) -> str:
        catalog = self.reader(at).schema.show().catalog
        if type_name not in {node.name for node in catalog.node_types}:
            message = f"node type {type_name[:100]!r} does not exist"
            raise TypeNotFoundError(message, hint="the tool schema lists the types")
        found = {each.name: each for each in catalog.type_named(type_name).properties}
        if property_name not in found:
            message = f"{type_name} has no property {property_name[:100]!r}"
            raise InvalidParameterError(message, hint=f"it has {', '.join(found)}", name="property")
        kind = found[property_name].type
        if not 1 <= limit <= AGENT_ROWS_MAX:
            message = f"limit must be from 1 to {AGENT_ROWS_MAX}, not {limit}"
            raise InvalidParameterError(message, name="limit")
        value = f"$x.{property_name}"
        if isinstance(kind, VectorType):
            condition, score, order = "", f"nearest({value}, $text)", f"nearest({value}, $text)"
        elif kind is Scalar.STRING:
            condition, score = f"search({value}, $text)", f"bm25({value}, $text)"
            order = f"{score} desc"
        else:
            message = f"{type_name}.{property_name} is neither a text nor a vector"
            raise InvalidParameterError(message, name="property")
        texts = [each.name for each in found.values() if each.type is Scalar.STRING]
        columns = ", ".join(["$x.id", *(f"$x.{name}" for name in texts)])
        return (
            f"query search($text: String) {{ match {{ $x: {type_name} {condition} }} "
            f"return {{ {columns}, {score} as score }} order {{ {order} }} limit {limit} }}"
        )

    def entity(self, type_name: str, id_: str, at: str | None) -> dict[str, Any]:
        """One node or edge."""
        found = self.reader(at).entity(type_name, id_)
        return {"entity": None if found is None else plain_value(found)}

    def history(self, limit: int, at: str | None) -> dict[str, Any]:
        """The newest commits of a branch."""
        most = min(require_number(limit, "limit"), AGENT_ROWS_MAX)
        commits = self.reader(at).commits.list(limit=most)
        wanted = ("commit_id", "branch", "operation", "actor", "message", "created_at")
        facts = [{name: getattr(commit, name) for name in wanted} for commit in commits]
        return {"commits": [plain_value(fact) for fact in facts]}

    def branches(self) -> dict[str, Any]:
        """The branches, and which one this agent writes to."""
        return {"branches": list(self.graph.branches.list()), "writes_to": str(self.branch)}

    def diff(self, before: str, after: str) -> dict[str, Any]:
        """What differs between two points: how many rows of each type, and the first of them."""
        diff = self.graph.diff(before, after)
        return {
            "counts": counts(diff),
            "changes": list(islice(row_objects(diff), AGENT_CHANGES_MAX)),
            **hidden_facts(diff.hidden),
        }

    def mutate(
        self, text: str, params: Mapping[str, object] | None, message: str | None
    ) -> dict[str, Any]:
        """Change the agent's branch."""
        result = self.writer().mutate(require_text(text, "query"), params, message=message)
        return {
            "commit_id": result.commit_id,
            "branch": str(self.branch),
            "changes": {name: asdict(counts) for name, counts in result.changes.items()},
        }

    def stored(self) -> tuple[StoredQuery, ...]:
        """The stored queries that fit the schema and that the agent may run."""
        return tuple(
            query
            for query in self.reader().queries.list()
            if query.fault is None and (self.writes or not query.changes)
        )

    def run(self, query: StoredQuery, params: Mapping[str, object]) -> dict[str, Any]:
        """Run a stored query; one that changes the graph changes the agent's branch."""
        if query.changes:
            return self.mutate(query.text, params, f"stored query {query.name}")
        limits = {**self.limits, "max_rows": AGENT_ROWS_MAX}
        result = self.reader().queries.run(query.name, params, **limits)
        return {"rows": [plain_value(row) for row in result.rows()]}  # type: ignore[union-attr]

    def review(self) -> dict[str, Any]:
        """What the agent's branch changes, for a person who decides whether to merge it."""
        if self.branch not in self.graph.branches.list():
            return {"branch": str(self.branch), "counts": {}, "changes": []}
        preview = self.graph.merge(self.branch, into=self.base, dry_run=True)
        return {
            "branch": str(self.branch),
            "into": self.base,
            "outcome": str(preview.outcome),
            "conflicts": preview.conflict_count,
            "merge_with": f"omnigraph branch merge {self.branch}",
            **self.diff(self.base, self.branch),
        }

    def propose(self, title: str, description: str) -> dict[str, Any]:
        """Propose the agent's branch to the people who review what is merged."""
        writer = self.writer()
        proposal = writer.proposals.create(
            self.branch, title, into=self.base, description=description
        )
        return {
            "proposal": proposal.number,
            "show_with": f"omnigraph proposal show {proposal.number}",
        }
