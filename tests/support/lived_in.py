"""A graph that has had some of everything that makes refs, and all that it answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import omnigraph
from omnigraph.graph import Graph
from omnigraph.storage.store import Store
from tests.support.publishing import KNOWS, PERSON
from tests.support.writers import (
    DRAFT,
    deletes,
    found_city,
    furnished,
    insert,
    person,
    upserts,
    write,
)

SECOND: Final = "second"
TAG: Final = "before"

History: TypeAlias = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]


def lived_in(uri: str | Path) -> Graph:
    """Branches of branches, a deleted branch that was merged, indexes on branches, a tag."""
    graph = furnished(str(uri))
    graph.ensure_indices()
    graph.branches.create(DRAFT)
    insert(graph, "yan", branch=DRAFT)
    write(graph, {PERSON: upserts(person("ada", 99)), KNOWS: deletes("ada-bob")}, branch=DRAFT)
    graph.branches.create(SECOND, branch=DRAFT)
    found_city(graph, "oslo", branch=SECOND)
    insert(graph, "sam", branch=SECOND)
    graph.ensure_indices(branch=SECOND)
    graph.tags.create(TAG)
    graph.branches.create("merged")
    insert(graph, "mia", branch="merged")
    insert(graph, "max")
    graph.merge("merged")
    graph.branches.delete("merged")
    graph.optimize(branch=SECOND)
    return graph


def history_of(uri: str | Path) -> History:
    """By branch and commit, and by type, what a fresh reader sees."""
    reader = omnigraph.open(uri, read_only=True)
    tables = Store.open(uri).tables
    found: dict[str, Mapping[str, Sequence[Mapping[str, Any]]]] = {}
    for branch in reader.branches.list():
        for commit in reader.commits.list(branch=branch):
            snapshot = reader.snapshot(commit=commit.commit_id)
            found[f"{branch} {commit.commit_id}"] = {
                str(key): sorted(
                    tables.open_pin(pin).read().to_pylist(), key=lambda row: str(row["id"])
                )
                for key, pin in snapshot.pins.items()
            }
    return found
