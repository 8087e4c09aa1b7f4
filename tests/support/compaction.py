"""Compacts whole tables, without the writer that chooses what is worth it; and with a defect."""

import json
from dataclasses import replace

from omnigraph.graph import Graph
from omnigraph.model.commits import OperationKind
from omnigraph.model.names import MAIN
from omnigraph.storage.compaction import Rewrite, rewrite_fragments, stage_rewrites
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Fragment, Table
from tests.support.writers import write


def stage_compaction(table: Table, *, row_version: int | None = None) -> StagedWrite:
    """Prepare to write all rows to new fragments.

    Args:
        row_version: A wrong row version for all rows, as a defect.
    """
    rewrite = rewrite_fragments(table, [fragment.id for fragment in table.fragments()])
    if row_version is not None:
        rewrite = _with_version(rewrite, row_version)
    return stage_rewrites(table, [rewrite])


def _with_version(rewrite: Rewrite, row_version: int) -> Rewrite:
    return replace(
        rewrite, after=tuple(_versioned(fragment, row_version) for fragment in rewrite.after)
    )


def _versioned(fragment: Fragment, row_version: int) -> Fragment:
    run = [10, 8, 10, 4, 10, 2, 16, fragment.physical_rows, 16, row_version]
    assert max(run) < 128, "larger numbers take several bytes"
    facts = {**fragment.to_json(), "last_updated_at_version_meta": {"inline": run}}
    return Fragment.from_json(json.dumps(facts))


def compact(graph: Graph, *, branch: str = MAIN, row_version: int | None = None) -> str | None:
    """Compact every table of a branch that has rows, shared or not; the commit.

    Unlike `Graph.optimize` it builds no index, and leaves no table out.
    """
    pins = graph.snapshot(branch=branch).pins
    stages = {
        key: lambda table: stage_compaction(table, row_version=row_version)
        for key, pin in pins.items()
        if pin.row_count
    }
    commit = write(graph, stages, branch=branch, kind=OperationKind.OPTIMIZE).commit
    return None if commit is None else commit.commit_id
