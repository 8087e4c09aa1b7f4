"""Footprints: the tables and columns that rules read, derived from their plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from omnigraph.integrity.deltas import POSITION, DeltaPart, Shape
from omnigraph.integrity.drafts import Draft, Reliance
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.model.tables import TableKey


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one rule reads, for deltas of one shape.

    Attributes:
        reads: The tables whose rows the delta requires, such as the nodes of an edge. They must be
            unchanged since the rule was checked, before the first effect.
        guards: The tables in which another writer could insert rows that break the rule, such as
            the edges of a deleted node. Nobody else may change them before the publish.
        columns: By table, the columns of upserted rows.
    """

    rule: SetRule
    reads: frozenset[TableKey]
    guards: frozenset[TableKey]
    columns: Mapping[TableKey, frozenset[str]]


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def footprints(rule_set: RuleSet, shape: Shape) -> tuple[Footprint, ...]:
    """The footprints of the set rules that a delta of this shape could break."""
    return tuple(
        _footprint(rule, rule.offenders(shape).draft) for rule in rule_set.set_rules_for(shape)
    )


def reads(footprints: Iterable[Footprint]) -> frozenset[TableKey]:
    """What `Work.reads` has to be for these rules."""
    return frozenset().union(*(footprint.reads for footprint in footprints))


def guards(footprints: Iterable[Footprint]) -> frozenset[TableKey]:
    """The tables that a write has to lock for these rules (`WritePlan.locks`)."""
    return frozenset().union(*(footprint.guards for footprint in footprints))


def columns(footprints: Iterable[Footprint]) -> dict[TableKey, frozenset[str]]:
    """By table, the columns of upserted rows that any of these rules reads."""
    every: dict[TableKey, frozenset[str]] = {}
    for footprint in footprints:
        for key, names in footprint.columns.items():
            every[key] = every.get(key, frozenset()) | names
    return every


def _footprint(rule: SetRule, draft: Draft) -> Footprint:
    shape = draft.shape
    # No two writers change one table at once, so a delta need not say so of its own tables.
    changed = shape.upserted | shape.deleted | shape.overwritten
    names: dict[TableKey, frozenset[str]] = {}
    for rows in draft.delta_rows:
        if rows.part is DeltaPart.UPSERTS:
            names[rows.table] = names.get(rows.table, frozenset()) | set(rows.columns) - {POSITION}
    return Footprint(
        rule,
        reads=frozenset(draft.tables_relied_on(Reliance.PRESENCE)) - changed,
        guards=frozenset(draft.tables_relied_on(Reliance.ABSENCE)) - changed,
        columns=names,
    )
