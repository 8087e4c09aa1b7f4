"""Rules about the ends of edges: both nodes exist, for written edges and for remaining ones."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from omnigraph.integrity.deltas import POSITION, Shape
from omnigraph.integrity.drafts import (
    Draft,
    Offenders,
    Reliance,
    alias_columns,
    anti_join,
    no_position,
    position_of,
    semi_join,
)
from omnigraph.integrity.violations import (
    Breach,
    Rule,
    ToOrigin,
    Violation,
    no_origin,
    origin_at,
    shorten,
)
from omnigraph.model.types import Scalar
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, table
from omnigraph.schema.catalog import EdgeType, NodeType


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of the edges that a delta writes: its node is in the delta, or remains."""

    edge: EdgeType
    end: str
    node: NodeType

    @property
    def breach(self) -> Breach:
        """The breach of an offender."""
        return Breach(Rule.ENDPOINT, self.edge.name, (self.end,))

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        return self.edge.table_key in shape.upserted

    def offenders(self, shape: Shape) -> Offenders:
        """The edges of the delta that have no such node."""
        draft = Draft(shape)
        edges = draft.upserts(self.edge.table_key, "id", POSITION, self.end)
        end = column(self.end, "e")
        query = (
            exp.select(*alias_columns(position=position_of("e"), id=column("id", "e"), node=end))
            .from_(table(edges, "e"))
            # An end that is missing altogether is reported as such.
            .where(exp.Not(this=exp.Is(this=end.copy(), expression=exp.Null())))
        )
        nodes = self.node.table_key
        if nodes in shape.upserted:
            query = anti_join(query, end.copy(), draft.upserts(nodes, "id"), "n")
        place = Place(edges, self.end)
        remaining = draft.remaining_rows(
            nodes, "id", by="id", among=place, replaced=True, reliance=Reliance.PRESENCE
        )
        if remaining is not None:
            query = anti_join(query, end.copy(), remaining, "c")
        return draft.offenders(query, ("node", Scalar.STRING))

    def describe(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation for a row of `offenders`."""
        edge_id = None if row["id"] is None else str(row["id"])
        message = (
            f"{self.edge.name} {shorten(edge_id)}: {self.end} refers to "
            f"{self.node.name} {shorten(row['node'])}, which does not exist"
        )
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, edge_id, row["node"], origin, message)


@dataclass(frozen=True, slots=True)
class DanglingEdge:
    """One end of the edges that a delta does not touch: its node is not deleted."""

    edge: EdgeType
    end: str
    node: NodeType

    @property
    def breach(self) -> Breach:
        """The breach of an offender."""
        return Breach(Rule.STRANDED, self.edge.name, (self.end,))

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        nodes = self.node.table_key
        remains = self.edge.table_key not in shape.overwritten
        return remains and nodes in shape.overwritten | shape.deleted

    def offenders(self, shape: Shape) -> Offenders:
        """The remaining edges whose node does not remain."""
        draft = Draft(shape)
        nodes = self.node.table_key
        # Deleted nodes can be looked up; of an overwritten type, any node may be missing.
        is_overwritten = nodes in shape.overwritten
        deleted = None if is_overwritten else draft.deletions(nodes)
        remaining = draft.remaining_rows(
            self.edge.table_key,
            "id",
            self.end,
            by=self.end,
            among=None if deleted is None else Place(deleted, "id"),
            replaced=False,
            reliance=Reliance.ABSENCE,
        )
        assert remaining is not None, "overwritten edges do not remain"
        end = column(self.end, "e")
        query = exp.select(
            *alias_columns(position=no_position(), id=column("id", "e"), node=end)
        ).from_(table(remaining, "e"))
        if deleted is not None:
            query = semi_join(query, end.copy(), deleted, "g")
        if nodes in shape.upserted:
            query = anti_join(query, end.copy(), draft.upserts(nodes, "id"), "n")
        return draft.offenders(query, ("node", Scalar.STRING))

    def describe(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation for a row of `offenders`."""
        edge_id = str(row["id"])
        message = (
            f"{self.node.name} {shorten(row['node'])} would be deleted, "
            f"but {self.edge.name} {shorten(edge_id)} still refers to it as {self.end}"
        )
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, edge_id, row["node"], origin, message)
