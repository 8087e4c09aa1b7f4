"""The index writer: builds the indexes that lookups use, and extends them to newer rows.

Indexes are derived: no answer needs one, and a write never waits for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType
from omnigraph.storage.indexes import IndexSpec, covered_fragments, stage_indexes
from omnigraph.storage.tables import Table
from omnigraph.transaction.work import Landed, Stage, View, Work


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What an index run did.

    Attributes:
        commit_id: The commit that published the indexes; None if nothing was missing.
        built: By type, the columns whose index was built or extended.
    """

    commit_id: str | None
    built: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def plan_indexes(view: View) -> Work[Mapping[TableKey, tuple[str, ...]]]:
    """What is missing of the indexes that the catalog calls for."""
    changes: dict[TableKey, Stage] = {}
    columns: dict[TableKey, tuple[str, ...]] = {}
    for type_ in view.catalog.types:
        key = type_.table_key
        table = view.data.table(key)
        if missing := [each for each in _wanted(type_) if not _covers_all(table, each)]:
            changes[key] = partial(stage_indexes, specs=missing)
            columns[key] = tuple(each.column for each in missing)
    return Work(columns, changes, replans=True)


def result_of(landed: Landed[Mapping[TableKey, tuple[str, ...]]]) -> IndexResult:
    """What became of the plan."""
    if landed.commit is None:
        return IndexResult(None)
    built = {str(key.type_name): columns for key, columns in landed.report.items()}
    return IndexResult(landed.commit.commit_id, built)


def _wanted(type_: SchemaType) -> list[IndexSpec]:
    """Ids and keys, by which writers find rows; ends, which walks follow; what must be unique."""
    ends = ENDPOINTS if isinstance(type_, EdgeType) else ()
    unique = [name for members in type_.uniques for name in members]
    return [IndexSpec(name) for name in dict.fromkeys(["id", *ends, *type_.key, *unique])]


def _covers_all(table: Table, spec: IndexSpec) -> bool:
    return covered_fragments(table, spec) >= {each.id for each in table.fragments()}
