"""Compacts tables through Lance, and publishes that as the maintenance of a graph."""

import json
from collections.abc import Collection
from itertools import count
from typing import Any

from lance import LanceOperation
from lance.optimize import Compaction

from omnigraph.graph import Graph
from omnigraph.model.commits import OperationKind
from omnigraph.model.names import MAIN
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Fragment, Table
from tests.support.writers import write


def stage_compaction(table: Table, *, row_version: int | None = None) -> StagedWrite | None:
    """Prepare to write all rows to as few fragments as possible; None if they are there.

    Args:
        row_version: A wrong row version for all rows, as a defect.
    """
    options: Any = {"target_rows_per_fragment": 1 << 20, "materialize_deletions_threshold": 0.0}
    tasks = Compaction.plan(table.handle, options).tasks
    if not tasks:
        return None
    numbers = count(max(fragment.id for fragment in table.fragments()) + 1)
    groups = []
    for task in tasks:
        done: Any = task.execute(table.handle)
        made = [_altered(each, next(numbers), row_version) for each in done.new_fragments]
        groups.append(LanceOperation.RewriteGroup(done.original_fragments, made))
    operation = LanceOperation.Rewrite(groups=groups, rewritten_indices=[])
    return StagedWrite(table.address, table, operation, table.count_rows())


def _altered(fragment: Fragment, number: int, row_version: int | None) -> Fragment:
    facts = {**fragment.to_json(), "id": number}
    if row_version is not None:
        run = [10, 8, 10, 4, 10, 2, 16, fragment.physical_rows, 16, row_version]
        assert max(run) < 128, "larger numbers take several bytes"
        facts["last_updated_at_version_meta"] = {"inline": run}
    return Fragment.from_json(json.dumps(facts))


def compact(
    graph: Graph,
    *,
    branch: str = MAIN,
    types: Collection[str] | None = None,
    row_version: int | None = None,
) -> str | None:
    """Compact the tables of a branch that have several fragments or deletions, in one commit.

    Returns:
        The commit; None if there was nothing to do.
    """
    snapshot = graph.snapshot(branch=branch)
    staged = {}
    for key, pin in snapshot.pins.items():
        table = graph._store.tables.open_pin(pin)
        is_wanted = types is None or key.type_name in types
        if is_wanted and stage_compaction(table) is not None:
            staged[key] = lambda own: _require(stage_compaction(own, row_version=row_version))
    if not staged:
        return None
    commit = write(graph, staged, branch=branch, kind=OperationKind.OPTIMIZE).commit
    return None if commit is None else commit.commit_id


def _require(staged: StagedWrite | None) -> StagedWrite:
    assert staged is not None, "there was something to do"
    return staged
