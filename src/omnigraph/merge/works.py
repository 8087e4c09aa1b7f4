"""The work of a merge: how to stage each table, what it relies on, what changes in the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from omnigraph.integrity import footprint
from omnigraph.integrity.deltas import Shape
from omnigraph.integrity.footprint import Footprint
from omnigraph.integrity.rules import RuleSet
from omnigraph.merge.decisions import Merged
from omnigraph.merge.rows import MergeRows
from omnigraph.merge.targets import MergeTarget
from omnigraph.model.tables import TableKey
from omnigraph.schema import codec
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.printer import print_schema
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table
from omnigraph.transaction.writes import CreatedTable, PinChange, SchemaChange, Stage

FindSchema = Callable[[str], AcceptedSchema]
"""Returns a schema by its digest, with its text."""


@dataclass(frozen=True, slots=True)
class MergeWork:
    """What a merge does to the target.

    Attributes:
        tables: By its key in the merged schema, what happens to the rows of each table.
        target: The target under the merged schema; None if both sides have that schema.
    """

    rows: MergeRows
    tables: Mapping[TableKey, Merged]
    target: MergeTarget | None
    rule_set: RuleSet

    def stages(self) -> dict[TableKey, Stage]:
        """How to stage each table of the target that changes, by its key until now."""
        keys = {key for key, merged in self.tables.items() if self.rows.counts(merged)}
        if self.target is not None:
            keys |= self.target.reshapes.keys()
        stages: dict[TableKey, Stage] = {}
        for key in keys:
            if (old_key := self._old_key(key)) is not None:
                stages[old_key] = partial(self._stage, key)
        return stages

    def reads(self) -> frozenset[TableKey]:
        """The tables of the target whose rows the merge relied on."""
        return self._old_keys(footprint.reads(self._footprints()))

    def locks(self) -> frozenset[TableKey]:
        """The tables of the target that must not change before the publish."""
        locks = self._old_keys(footprint.guards(self._footprints()))
        return locks if self.target is None else locks | self.target.locks()

    def schema_change(self, find_schema: FindSchema) -> SchemaChange | None:
        """What changes in the schema of the target; None if nothing does."""
        target = self.target
        if target is None or target.schema.is_that_of(target.commit_id):
            return None
        schema, pins = target.schema, target.view.snapshot.pins
        changed = {}
        for key, old_key in schema.matching(target.commit_id).types.items():
            identity = schema.identities[key]
            if (key, identity) != (old_key, pins[old_key].identity):
                changed[old_key] = PinChange(key, identity)
        dropped = schema.matching(target.commit_id).dropped_types(target.view.catalog)
        return SchemaChange(
            self._accepted(target, find_schema),
            created=tuple(self._created(target)),
            changed=changed,
            dropped=frozenset(type_.table_key for type_ in dropped),
            declared=target.steps.changed_types,
        )

    def _accepted(self, target: MergeTarget, find_schema: FindSchema) -> AcceptedSchema:
        """The merged schema, with the text of a side that has the same one."""
        catalog = target.schema.catalog
        digest = codec.digest(catalog)
        for snapshot in (target.source.snapshot, target.view.snapshot):
            if snapshot.schema_digest == digest:
                return find_schema(digest)
        return AcceptedSchema(catalog, print_schema(catalog))

    def _created(self, target: MergeTarget) -> Iterator[CreatedTable]:
        """The types that the target lacks, each with the rows that the source has of it."""
        schema = target.schema
        for type_ in schema.matching(target.commit_id).new_types(schema.catalog):
            merged = self.tables.get(type_.table_key)
            fill = None
            if merged is not None and self.rows.counts(merged):
                fill = partial(self.rows.stage, merged)
            yield CreatedTable(type_, schema.identities[type_.table_key], fill)

    def _stage(self, key: TableKey, table: Table) -> StagedWrite | None:
        merged = self.tables.get(key)
        has_rows = merged is not None and bool(self.rows.counts(merged))
        reshaped = None
        if self.target is not None:
            reshaped = self.target.staged(key, table, rows_change=has_rows)
        if merged is None or not has_rows:
            return reshaped
        return self.rows.stage(merged, table, reshaped)

    def _footprints(self) -> tuple[Footprint, ...]:
        counts = {key: self.rows.counts(merged) for key, merged in self.tables.items()}
        shape = Shape(
            upserted=frozenset(key for key, own in counts.items() if own.inserted or own.updated),
            deleted=frozenset(key for key, own in counts.items() if own.deleted),
        )
        return footprint.footprints(self.rule_set, shape)

    def _old_key(self, key: TableKey) -> TableKey | None:
        return key if self.target is None else self.target.old_key(key)

    def _old_keys(self, keys: Iterable[TableKey]) -> frozenset[TableKey]:
        return frozenset(old for key in keys if (old := self._old_key(key)) is not None)
