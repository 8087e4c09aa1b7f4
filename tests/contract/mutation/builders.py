"""Graphs that are mutated: plans made and landed through the one protocol of all writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.choices import EmbedWhen
from omnigraph.clock import SystemClock
from omnigraph.graph import Graph
from omnigraph.lang.source import Source
from omnigraph.manifest.schemas import Catalogs
from omnigraph.model.commits import OperationKind
from omnigraph.model.names import MAIN
from omnigraph.mutation.plan import Mutation, Mutations
from omnigraph.mutation.results import MutationReport, MutationResult, result_of
from omnigraph.policy.authority import UNLIMITED
from omnigraph.transaction.commit import Transactions
from omnigraph.transaction.view import View, view_of
from omnigraph.transaction.writes import WritePlan, WriteRequest
from tests.support.graphs import Rows, add_indexes, graph_with

Counts = tuple[int, int, int]
"""Inserted, updated, deleted."""


@dataclass(frozen=True, slots=True)
class Mutated:
    """One graph, and mutations of it."""

    graph: Graph
    mutations: Mutations
    transactions: Transactions
    catalogs: Catalogs

    def prepared(self, body: str, declared: str = "", /, **parameters: object) -> Mutation:
        """A mutation of these statements, with these parameters."""
        text = f"query q({declared}) {{ {body} }}"
        return self.mutations.prepare(
            Source("query", text),
            parameters,
            name=None,
            embedding=self.graph._begin_embedding(EmbedWhen.AUTO),
        )

    def view(self) -> View:
        """The graph as it is."""
        return view_of(self.graph._manifest, self.catalogs, MAIN)

    def plan(
        self, body: str, declared: str = "", /, **parameters: object
    ) -> WritePlan[MutationReport]:
        """What the statements would change."""
        return self.prepared(body, declared, **parameters).plan(self.view())

    def run(self, body: str, declared: str = "", /, **parameters: object) -> MutationResult:
        """Carry the statements out."""
        mutation = self.prepared(body, declared, **parameters)
        order = WriteRequest(OperationKind.MUTATION, MAIN)
        return result_of(self.transactions.run(order, mutation.plan))

    def counts(self, body: str, declared: str = "", /, **parameters: object) -> dict[str, Counts]:
        """Carry the statements out; what changed, by type."""
        result = self.run(body, declared, **parameters)
        return {
            name: (each.inserted, each.updated, each.deleted)
            for name, each in result.changes.items()
        }

    def rows(self, type_name: str) -> dict[str, dict[str, Any]]:
        """The rows of a type by id, without that; no id may stand twice."""
        key = self.view().catalog.type_named(type_name).table_key
        found = self.view().data.table(key).read().to_pylist()
        assert len({row["id"] for row in found}) == len(found)
        return {row.pop("id"): row for row in found}

    def column(self, type_name: str, name: str) -> dict[str, Any]:
        """One column of a type by id."""
        return {id_: row[name] for id_, row in self.rows(type_name).items()}

    def row_counts(self) -> dict[str, int]:
        """How many rows the manifest says that each type has."""
        return {key.type_name: pin.row_count for key, pin in self.view().snapshot.pins.items()}

    def head(self) -> str:
        """The newest commit."""
        return self.view().snapshot.head.commit_id


def mutated(
    where: Path, schema: str, rows: Mapping[str, Rows] | None = None, *, indexed: bool = False
) -> Mutated:
    """A new graph with these rows."""
    graph = graph_with(where, schema, rows or {})
    if indexed:
        add_indexes(graph)
    clock, catalogs = SystemClock(), Catalogs(graph._store.objects)
    transactions = Transactions(graph._manifest, clock, catalogs, UNLIMITED)
    return Mutated(graph, Mutations(graph._queries, clock), transactions, catalogs)
