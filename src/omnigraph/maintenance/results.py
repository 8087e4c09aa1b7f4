"""Results of maintenance, as data: a client over HTTP has them without what makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self

from omnigraph.choices import EngineName, IndexKind, IndexSource, IndexState
from omnigraph.embedding.counts import EmbeddingStatus
from omnigraph.model.brief import brief
from omnigraph.model.commits import OperationKind
from omnigraph.schema.catalog import IndexOptions

if TYPE_CHECKING:
    from omnigraph.maintenance.optimize import OptimizeReport
    from omnigraph.transaction.writes import WriteOutcome


@brief
@dataclass(frozen=True, slots=True)
class IndexStatus:
    """An index that a type asks for, or that its table has.

    Attributes:
        sources: What asks for it: `id`, `end`, `key`, `unique`, `@index`. None of these if the
            table has an index that the schema does not ask for any more.
        state: `complete`, `partial`, `missing`, `scanned`, if there are too few vectors for an
            index, or `not needed`, if the next run removes it.
        rows_covered: Rows that are found by it; the others of its `rows` are scanned.
        segments: Its parts; each lookup reads all of them.
        built_at: When it was built or extended last, and its `age` since then; None if it is not
            built.
        options: How texts or vectors are searched by it; None for an index for lookups.
    """

    type_name: str
    column: str
    kind: IndexKind
    sources: tuple[IndexSource, ...]
    state: IndexState
    rows: int
    rows_covered: int = 0
    segments: int = 0
    bytes: int = 0
    built_at: datetime | None = None
    age: timedelta | None = None
    options: IndexOptions | None = None


@brief
@dataclass(frozen=True, slots=True)
class IndexResult:
    """What an index run did.

    Attributes:
        commit_id: The commit that published the indexes; None if nothing was to be done.
        built: By type, the columns whose index was built or extended.
        joined: By type, the columns whose index had so many segments that some were joined.
        removed: By type, the columns of which an index, or a part of one, was not needed any more.
        waiting: By type, the columns with so few vectors that a scan of them is as fast.
        engine: The engine that built the indexes; `why` says why it was chosen.
        hidden: The types that the actor may not read, which are left out.
    """

    commit_id: str | None
    engine: EngineName
    why: str
    built: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    removed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


@brief
@dataclass(frozen=True, slots=True)
class TableOptimization:
    """What an optimize did to the table of one type.

    Attributes:
        fragments_before: How many fragments it had; and `fragments_after`, has now.
        rows_rewritten: Rows that were copied to new files.
        bytes_rewritten: The size of the files that they were copied from.
        indexed: The columns whose index was built or extended.
    """

    fragments_before: int
    fragments_after: int
    rows_rewritten: int = 0
    bytes_rewritten: int = 0
    indexed: tuple[str, ...] = ()


@brief
@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """What an optimize did.

    Attributes:
        commit_id: The commit that it made; None if there was nothing to do.
        tables: By type, what was done; types whose tables stay as they are are left out.
        shared: Types that the branch has not written to: their tables belong to another branch.
        engine: The engine that did the work; `why` says why it was chosen.
        hidden: The types that the actor may not read, which are left out.
    """

    commit_id: str | None
    engine: EngineName
    why: str
    tables: Mapping[str, TableOptimization] = field(default_factory=dict)
    shared: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @classmethod
    def of(cls, landed: WriteOutcome[OptimizeReport]) -> Self:
        """The result of a plan that was carried out."""
        report, commit = landed.report, landed.commit
        tables = {str(key.type_name): done for key, done in report.tables.items()}
        return cls(
            None if commit is None else commit.commit_id,
            report.choice.engine,
            report.choice.why,
            tables if commit else {},
            report.shared,
        )


@dataclass(frozen=True, slots=True)
class Drift:
    """One head beyond its pin that no write explains.

    Attributes:
        table_key: The type, such as `node:Person`.
        location: The table, below the graph's root.
        pinned: The version that readers see, before and after the repair.
        head: The newest version; its rows are kept, and no reader of the graph sees them.
        made_by: The writer that the version names; None if it names none.
    """

    branch: str
    table_key: str
    location: str
    pinned: int
    head: int
    made_by: OperationKind | None


@brief
@dataclass(frozen=True, slots=True)
class RepairResult:
    """What a repair did, or would do.

    Attributes:
        drifts: The heads that were beyond their pins.
        commit_ids: The commits that record it, one for each branch; none in a dry run.
    """

    drifts: tuple[Drift, ...] = ()
    commit_ids: tuple[str, ...] = ()


@brief
@dataclass(frozen=True, slots=True)
class EmbedResult:
    """What a run did.

    Attributes:
        engine: The engine that carried it out, and `why` it was chosen.
        embedded: By the name of the type, rows that were embedded.
        commits: The commits that it made, the oldest first.
        status: The states of all vectors afterwards; rows that others wrote meanwhile may wait.
        hidden: The types that the actor may not read, which are left out.
    """

    branch: str
    engine: EngineName
    why: str
    embedded: Mapping[str, int] = field(default_factory=dict)
    commits: tuple[str, ...] = ()
    status: tuple[EmbeddingStatus, ...] = ()
    hidden: tuple[str, ...] = ()
