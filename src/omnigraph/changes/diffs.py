"""Diffs as data: how two commits differ, and some commits of the feed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from omnigraph.changes.pages import count_ops, page_tables
from omnigraph.changes.rows import Changes, RowChange, row_changes
from omnigraph.choices import EngineName, Op
from omnigraph.model.arguments import misfit_error, require_number
from omnigraph.model.brief import brief
from omnigraph.model.commits import Commit
from omnigraph.model.counts import Counts
from omnigraph.schema.steps import SchemaStep


@brief
@dataclass(frozen=True, slots=True)
class GraphDiff:
    """How a graph differs between two commits.

    Attributes:
        before: The earlier commit; `after` is the later one.
        tables: The types that differ, in the order of the later catalog, then those that only the
            earlier one has. Rows are those of the later type; a value that it cannot hold is null.
        schema: How the schemas differ; empty if they do not, or were not compared.
        engine: The engine that compared them, and `why` it was chosen.
        hidden: The types that the actor may not read, which are left out.
    """

    before: str
    after: str
    tables: tuple[Changes, ...]
    ops: frozenset[Op] = frozenset(Op)
    engine: EngineName = EngineName.LOCAL
    why: str = ""
    schema: tuple[SchemaStep, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[str, Counts]:
        """By type, how many rows were inserted, updated and deleted."""
        counts: dict[str, Counts] = {}
        for table in self.tables:
            # A type that was dropped and another one that was added may have the same name.
            name = table.type.name
            counts[name] = counts.get(name, Counts()) + count_ops(table.counts, self.ops)
        return counts

    def rows(self) -> Iterator[RowChange]:
        """Every change, with the row before and after it; Spark returns them part by part."""
        for table in self.tables:
            yield from row_changes(table, self.ops)

    def page(self, offset: int, limit: int) -> GraphDiff:
        """The same diff with some of its changes alone, by their position in `rows`.

        Raises:
            InvalidParameterError: a number is negative.
        """
        start, count = _require_position(offset, "offset"), _require_position(limit, "limit")
        tables = page_tables(self.tables, self.ops, start, start + count)
        return replace(self, tables=tuple(tables))


def _require_position(value: object, name: str) -> int:
    number = require_number(value, name)
    if number < 0:
        raise misfit_error(value, name, "at least 0")
    return number


@brief
@dataclass(frozen=True, slots=True)
class CommitChanges:
    """One commit, and its changes since the commit before it on its branch."""

    commit: Commit
    diff: GraphDiff


@brief
@dataclass(frozen=True, slots=True)
class Batch:
    """Some commits of the feed, oldest first; maintenance, which changes no row, is left out.

    Attributes:
        cursor: Where to continue. It names a commit, so no commit is delivered in part, and is
            valid for as long as that commit is in the branch's history.
        is_newest: Whether there are no more commits.
    """

    commits: tuple[CommitChanges, ...]
    cursor: str
    is_newest: bool

    @property
    def hidden(self) -> tuple[str, ...]:
        """The types that the actor may not read: what changed in them is left out."""
        return tuple(sorted({name for each in self.commits for name in each.diff.hidden}))
