"""Rules about the ends of edges: both nodes exist, for edges that come and for edges that stay."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from omnigraph.integrity.deltas import POSITION, Shape
from omnigraph.integrity.drafts import (
    Draft,
    Offenders,
    Reliance,
    aliased,
    among,
    no_position,
    position_of,
    without,
)
from omnigraph.integrity.violations import (
    Breach,
    Rule,
    ToOrigin,
    Violation,
    no_origin,
    origin_at,
    shortened,
)
from omnigraph.model.types import Scalar
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, table
from omnigraph.schema.catalog import EdgeType, NodeType


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of the edges that a delta writes: its node is in the delta, or committed and left."""

    edge: EdgeType
    end: str
    node: NodeType

    @property
    def breach(self) -> Breach:
        """What an offender breaks."""
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
            exp.select(*aliased(position=position_of("e"), id=column("id", "e"), node=end))
            .from_(table(edges, "e"))
            # An end that is missing altogether is reported as such.
            .where(exp.Not(this=exp.Is(this=end.copy(), expression=exp.Null())))
        )
        nodes = self.node.table_key
        if nodes in shape.upserted:
            query = without(query, end.copy(), draft.upserts(nodes, "id"), "n")
        place = Place(edges, self.end)
        left = draft.remaining(
            nodes, "id", by="id", among=place, replaced=True, reliance=Reliance.PRESENCE
        )
        if left is not None:
            query = without(query, end.copy(), left, "c")
        return draft.offenders(query, ("node", Scalar.STRING))

    def described(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation that a row of `offenders` is."""
        found = None if row["id"] is None else str(row["id"])
        message = (
            f"{self.edge.name} {shortened(found)}: {self.end} is {shortened(row['node'])}, "
            f"and there is no such {self.node.name}"
        )
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, found, row["node"], origin, message)


@dataclass(frozen=True, slots=True)
class Stranded:
    """One end of the edges that a delta leaves alone: its node does not go."""

    edge: EdgeType
    end: str
    node: NodeType

    @property
    def breach(self) -> Breach:
        """What an offender breaks."""
        return Breach(Rule.STRANDED, self.edge.name, (self.end,))

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        nodes = self.node.table_key
        stays = self.edge.table_key not in shape.overwritten
        return stays and nodes in shape.overwritten | shape.deleted

    def offenders(self, shape: Shape) -> Offenders:
        """The edges that are left and whose node is not."""
        draft = Draft(shape)
        nodes = self.node.table_key
        # Nodes that are deleted can be looked up; of an overwritten type any may be gone.
        all_go = nodes in shape.overwritten
        gone = None if all_go else draft.deletions(nodes)
        left = draft.remaining(
            self.edge.table_key,
            "id",
            self.end,
            by=self.end,
            among=None if gone is None else Place(gone, "id"),
            replaced=False,
            reliance=Reliance.ABSENCE,
        )
        assert left is not None, "edges that are overwritten do not stay"
        end = column(self.end, "e")
        query = exp.select(*aliased(position=no_position(), id=column("id", "e"), node=end)).from_(
            table(left, "e")
        )
        if gone is not None:
            query = among(query, end.copy(), gone, "g")
        if nodes in shape.upserted:
            query = without(query, end.copy(), draft.upserts(nodes, "id"), "n")
        return draft.offenders(query, ("node", Scalar.STRING))

    def described(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation that a row of `offenders` is."""
        found = str(row["id"])
        message = (
            f"{self.node.name} {shortened(row['node'])} goes, "
            f"and {self.edge.name} {shortened(found)} still has it as {self.end}"
        )
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, found, row["node"], origin, message)
