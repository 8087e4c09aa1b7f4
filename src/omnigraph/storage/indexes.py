"""Scalar indexes: what a table has, what they cover, and staging what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lance import LanceOperation

from omnigraph.storage import written
from omnigraph.storage.staging import Staged
from omnigraph.storage.tables import Table
from omnigraph.storage.translate import translating


class IndexKind(StrEnum):
    """The index structures we build; Lance's own words."""

    BTREE = "BTREE"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index a table should have."""

    column: str
    kind: IndexKind = IndexKind.BTREE

    @property
    def name(self) -> str:
        """The name we give it, so that a later build finds and extends it."""
        return f"{self.column}_{self.kind.lower()}"


def covered_fragments(table: Table, spec: IndexSpec) -> frozenset[int]:
    """The ids of the fragments that the index covers; none where it does not exist."""
    with translating("reading the indexes of", table.address.uri):
        found = [each for each in table.handle.describe_indices() if each.name == spec.name]
        segments = [segment for index in found for segment in index.segments]
        return frozenset(fragment for each in segments for fragment in each.fragment_ids)


def indexed_columns(table: Table) -> frozenset[str]:
    """The columns that an index of ours finds values in, if not in every fragment."""
    with translating("reading the indexes of", table.address.uri):
        names = {each.name for each in table.handle.describe_indices()}
    return frozenset(name for name in table.schema.names if IndexSpec(name).name in names)


def stage_indexes(table: Table, specs: Iterable[IndexSpec]) -> Staged | None:
    """Build what the wanted indexes lack, for all columns in one transaction; None if nothing.

    An index that exists is extended by a segment over the fragments it does not cover yet.
    """
    every = frozenset(table.handle.fragment_ids())
    segments = []
    for spec in specs:
        covered = covered_fragments(table, spec)
        if missing := sorted(every - covered):
            with translating(f"indexing {spec.column} of", table.address.uri):
                segment = table.handle.create_index_uncommitted(
                    spec.column,
                    spec.kind.value,
                    name=spec.name,
                    replace=bool(covered),
                    fragment_ids=missing,
                )
            written.require_index(table.address, segment.uuid)
            segments.append(segment)
    if not segments:
        return None
    operation = LanceOperation.CreateIndex(new_indices=segments, removed_indices=[])
    return Staged(table.address, table, operation, table.count_rows())
