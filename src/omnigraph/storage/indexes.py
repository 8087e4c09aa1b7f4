"""Indexes: which ones a table has, what they cover, and staging what is missing.

An index is a set of segments, each over some fragments. Segments can be built by many processes at
once and joined afterwards; a lookup reads every segment, so few are better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from lance import LanceOperation
from lance.dataset import Index

from omnigraph.choices import IndexKind, VectorKind
from omnigraph.errors import OmnigraphError
from omnigraph.limits import VECTOR_SEGMENT_ROWS_MIN
from omnigraph.schema.catalog import IndexOptions, TextOptions, VectorOptions
from omnigraph.storage import filters, lance_messages, truncation, vector_models
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.search_options import read_options, text_arguments, vector_arguments
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table, TableAddress
from omnigraph.storage.translate import translate_errors
from omnigraph.storage.vector_models import VectorModel

if TYPE_CHECKING:
    from lance.lance.indices import IndexDescription, IndexSegmentDescription

Segment = Index
"""Index files over some fragments; unreferenced until they are committed. Opaque outside storage,
and small: it can be sent to any process."""


_SOME_VALUES: Final[Mapping[pa.DataType, filters.Literal]] = {
    pa.string(): "",
    pa.bool_(): True,
    pa.int32(): 0,
    pa.int64(): 0,
    pa.uint32(): 0,
    pa.uint64(): 0,
    pa.float32(): 0.0,
    pa.float64(): 0.0,
    pa.date32(): date(1970, 1, 1),
    pa.timestamp("us", "UTC"): datetime(1970, 1, 1, tzinfo=UTC),
}
"""A value of each type that an indexed column may have."""

_LOOKUP_KINDS: Final = (IndexKind.BTREE, IndexKind.BITMAP)
"""The kinds of index for lookups that are built, or were once."""


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index a table should have.

    Attributes:
        options: How it is searched; None for an index for lookups.
    """

    column: str
    kind: IndexKind = IndexKind.BTREE
    options: IndexOptions | None = None

    @property
    def name(self) -> str:
        """The name of the first such index. It keeps that when its column is renamed."""
        return f"{self.column}_{self.kind.lower()}"


@dataclass(frozen=True, slots=True)
class TableIndex:
    """An index that a table has.

    Attributes:
        spec: What it indexes; None if we do not build such. It is known by the column, not by the
            name: an index stays with a column that is renamed, and keeps its own name, while
            another column may get the name that the column had.
        byte_count: The size of its files, in this table's folder or in one that it was forked from.
    """

    name: str
    spec: IndexSpec | None
    segments: tuple[Segment, ...]
    byte_count: int

    @property
    def fragments(self) -> frozenset[int]:
        """The ids of the fragments that it covers, of which some may be gone."""
        return frozenset(id_ for segment in self.segments for id_ in segment.fragment_ids)

    @property
    def built_at(self) -> datetime | None:
        """When its newest segment was built."""
        times = [segment.created_at for segment in self.segments if segment.created_at is not None]
        return max(times, default=None)


@dataclass(frozen=True, slots=True)
class Gap:
    """The fragments, by their ids, that an index does not cover."""

    spec: IndexSpec
    fragments: tuple[int, ...]


def covered_fragments(table: Table, spec: IndexSpec) -> frozenset[int]:
    """The ids of the fragments that the index covers; none where it does not exist."""
    return _coverage(table).get(spec, frozenset())


def indexed_columns(table: Table, kind: IndexKind = IndexKind.BTREE) -> frozenset[str]:
    """The columns that have an index of this kind, which need not cover every fragment."""
    return frozenset(spec.column for spec in _coverage(table) if spec.kind is kind)


def require_readable(table: Table, index: TableIndex) -> None:
    """Open every segment of an index, which reads little of it."""
    with translate_errors(f"reading the index {index.name} of", table.address.uri):
        table.handle.stats.index_stats(index.name)


def count_found(table: Table, index: TableIndex) -> int:
    """How many rows of the table an index finds, of all that it covers. Reads all of it."""
    assert index.spec is not None, "it is of a kind of ours"
    name = index.spec.column
    value = _SOME_VALUES[table.schema.field(name).type]
    # Every row passes one of these, and the index must say which.
    tests = (
        filters.compare(name, ">=", value),
        filters.compare(name, "<", value),
        filters.is_null(name),
    )
    return table.count_indexed(" OR ".join(tests))


def covered_by_column(table: Table) -> dict[str, frozenset[int]]:
    """The ids of the fragments that some index of each column covers, of any kind for lookups."""
    covered: dict[str, frozenset[int]] = {}
    for spec, fragments in _coverage(table).items():
        if not spec.kind.is_for_search:
            covered[spec.column] = covered.get(spec.column, frozenset()) | fragments
    return covered


def find_gaps(table: Table, specs: Iterable[IndexSpec]) -> tuple[Gap, ...]:
    """The gaps of the wanted indexes; none for an index that covers every fragment."""
    every = frozenset(table.handle.fragment_ids())
    coverage = _coverage(table)
    uncovered = ((spec, every - coverage.get(spec, frozenset())) for spec in specs)
    gaps = (Gap(spec, tuple(sorted(missing))) for spec, missing in uncovered if missing)
    return tuple(gap for gap in gaps if is_buildable(table, gap))


def is_slow(spec: IndexSpec) -> bool:
    """Whether it takes long to build, however few rows there are: codes and graphs are learnt."""
    return isinstance(spec.options, VectorOptions) and spec.options.kind is not VectorKind.IVF_FLAT


def is_buildable(table: Table, gap: Gap) -> bool:
    """Whether there is enough in the fragments of a gap for a segment of their own."""
    if gap.spec.kind is not IndexKind.VECTOR:
        return True
    row_counts = {fragment.id: fragment.num_rows for fragment in table.fragments()}
    if sum(row_counts[id_] for id_ in gap.fragments) < VECTOR_SEGMENT_ROWS_MIN:
        return False
    # Vectors that are not embedded yet are null, and nothing is learnt from them.
    return _count_vectors(table, gap) >= VECTOR_SEGMENT_ROWS_MIN


def _count_vectors(table: Table, gap: Gap) -> int:
    with translate_errors(f"counting vectors of {gap.spec.column} of", table.address.uri):
        scanner = table.handle.scanner(
            filter=filters.is_not_null(gap.spec.column),
            fragments=table.open_fragments(gap.fragments),
        )
        return int(scanner.count_rows())


def highest_fragment_id(table: Table) -> int:
    """The highest id that a fragment of this table ever had; -1 where none ever had one.

    A fragment with an id that some segment names is thought to be indexed, even if that segment was
    built over another fragment of the same id: its rows would not be found. So a fragment that is
    numbered by hand gets an id above this one.
    """
    highest = lance_messages.fragment_id_max(lance_messages.serialized_manifest(table.handle))
    # Lance counts on by itself; the others are what a mistake of it would damage.
    named = (max(index.fragments, default=-1) for index in read_indexes(table))
    return max(highest, max(table.handle.fragment_ids(), default=-1), *named, -1)


def read_indexes(table: Table) -> tuple[TableIndex, ...]:
    """The indexes of a table, of every kind. Reads nothing but what the handle holds."""
    return table.fact("indexes", lambda: _read_indexes(table))


def find_search_index(
    table: Table, column: str, fits: Callable[[IndexOptions], bool]
) -> TableIndex | None:
    """The index for searches of a column whose options fit, or None. Reads nothing.

    There is none in a table whose indexes are not to be used, either.
    """
    for index in () if table.ignores_indexes else read_indexes(table):
        spec = index.spec
        if spec is not None and spec.column == column and spec.options and fits(spec.options):
            return index
    return None


def _read_indexes(table: Table) -> tuple[TableIndex, ...]:
    with translate_errors("reading the indexes of", table.address.uri):
        return tuple(
            TableIndex(
                index.name,
                _to_spec(index),
                tuple(_to_segment(index, segment) for segment in index.segments),
                index.total_size_bytes or 0,
            )
            for index in table.handle.describe_indices()
        )


def _coverage(table: Table) -> Mapping[IndexSpec, frozenset[int]]:
    return table.fact("coverage", lambda: _find_coverage(table))


def _find_coverage(table: Table) -> dict[IndexSpec, frozenset[int]]:
    indexes = () if table.ignores_indexes else read_indexes(table)
    return {index.spec: index.fragments for index in indexes if index.spec is not None}


def _to_spec(index: IndexDescription) -> IndexSpec | None:
    if len(index.field_names) != 1:
        return None
    (column,) = index.field_names
    for kind in _LOOKUP_KINDS:
        if index.index_type.upper() == kind:
            return IndexSpec(column, kind)
    for_search = read_options(index.index_type, index.details)
    return None if for_search is None else IndexSpec(column, *for_search)


def _to_segment(index: IndexDescription, segment: IndexSegmentDescription) -> Segment:
    """A committed segment as Lance takes it to join or remove it."""
    return Segment(
        uuid=segment.uuid,
        name=index.name,
        fields=list(index.fields),
        dataset_version=segment.dataset_version_at_last_update,
        fragment_ids=segment.fragment_ids,
        index_version=segment.index_version,
        created_at=segment.created_at,
        base_id=segment.base_id,
        index_details=(index.type_url, b""),
    )


def name_index(table: Table, spec: IndexSpec) -> str:
    """The name of the index, or, where there is none yet, one that no other index has."""
    names = {index.name: index.spec for index in read_indexes(table)}
    own = [name for name, other in names.items() if other == spec]
    numbered = (f"{spec.name}_{number}" for number in count(2))
    fresh = (name for name in chain([spec.name], numbered) if name not in names)
    return own[0] if own else next(fresh)


def stage_indexes(table: Table, specs: Iterable[IndexSpec]) -> StagedWrite | None:
    """Fill the gaps of the wanted indexes in one transaction; None if there are no gaps.

    An existing index is extended by a segment over the fragments it does not cover yet.
    """
    gaps = find_gaps(table, specs)
    return stage_segments(table, [build_segment(table, gap) for gap in gaps]) if gaps else None


def is_joinable(spec: IndexSpec) -> bool:
    """Whether segments over different fragments can be joined; of vectors, by a shared model."""
    options = spec.options
    return not isinstance(options, VectorOptions) or options.kind in vector_models.SHARED_KINDS


def learn_model(table: Table, gap: Gap) -> VectorModel:
    """What the segments over parts of a gap of vectors must share so that they can be joined."""
    with translate_errors(f"learning from {gap.spec.column} of", table.address.uri):
        count = _count_vectors(table, gap)
        arguments = _vector_arguments(table, gap.spec, count)
        return vector_models.learn(
            table.handle, gap.spec.column, gap.fragments, arguments, vector_count=count
        )


def has_vectors(table: Table, gap: Gap) -> bool:
    """Whether there is a vector in the fragments of a gap; Lance builds no segment without one."""
    with translate_errors(f"reading {gap.spec.column} of", table.address.uri):
        scanner = table.handle.scanner(
            columns=[],
            with_row_id=True,
            filter=filters.is_not_null(gap.spec.column),
            fragments=table.open_fragments(gap.fragments),
            limit=1,
        )
        return bool(scanner.to_table().num_rows)


def build_segment(table: Table, gap: Gap, model: VectorModel | None = None) -> Segment:
    """Index the fragments of a gap, and read no others; the files are still unreferenced.

    Safe to run in any process and to run twice: only segments named in a staged write count.

    Args:
        model: Of vectors, what was learnt from more than these fragments; None learns from them.
    """
    # Others read through the table's handle. While Lance builds an index through a handle, it
    # rejects every other call on that handle.
    own = copy(table.handle)
    with translate_errors(f"indexing {gap.spec.column} of", table.address.uri):
        segment = own.create_index_uncommitted(
            gap.spec.column,
            _lance_type(gap.spec),
            name=name_index(table, gap.spec),
            # Replaces nothing: it allows the name of an existing index, which this one extends.
            replace=True,
            fragment_ids=list(gap.fragments),
            **(_build_arguments(table, gap) if model is None else model.arguments),
        )
        if gap.spec.kind is IndexKind.INVERTED:
            # What was written is not readable yet (docs/substrate.md).
            segment = own.merge_existing_index_segments([segment])
            _clear(table.address, f"{segment.uuid}/staging")
    truncation.require_index(table.address, segment.uuid)
    return segment


def _lance_type(spec: IndexSpec) -> str:
    options = spec.options
    if isinstance(options, VectorOptions):
        assert options.kind is not None, "it was chosen by the rows of the table"
        return options.kind.upper()
    return spec.kind.value


def _build_arguments(table: Table, gap: Gap) -> dict[str, Any]:
    match gap.spec.options:
        case None:
            return {}
        case TextOptions() as options:
            return text_arguments(options)
        case VectorOptions():
            return _vector_arguments(table, gap.spec, _count_vectors(table, gap))


def _vector_arguments(table: Table, spec: IndexSpec, row_count: int) -> dict[str, Any]:
    assert isinstance(spec.options, VectorOptions), "it is an index of vectors"
    dimension = table.schema.field(spec.column).type.list_size
    return vector_arguments(spec.options, rows=row_count, dimension=dimension)


def join_segments(table: Table, segments: Sequence[Segment]) -> Segment:
    """Join several segments of one index into one, without reading the table.

    Safe to run in any process and to run twice, like `build_segment`.
    """
    with translate_errors("joining indexes of", table.address.uri):
        joined: Segment = copy(table.handle).merge_existing_index_segments(list(segments))
    truncation.require_index(table.address, joined.uuid)
    return joined


def discard_segments(address: TableAddress, segments: Iterable[Segment]) -> None:
    """Delete segments that were joined and never committed. Failures to delete are ignored."""
    for segment in segments:
        _clear(address, segment.uuid)


def _clear(address: TableAddress, folder: str) -> None:
    with suppress(OmnigraphError):
        Objects(address.root, Meter()).clear(f"{address.folder}/_indices/{folder}")


def stage_segments(
    table: Table, segments: Sequence[Segment], *, removed: Sequence[Segment] = ()
) -> StagedWrite:
    """Assemble one transaction from segments already built, of one index or of several.

    Args:
        removed: Committed segments that the table will not have any more.
    """
    operation = LanceOperation.CreateIndex(
        new_indices=list(segments), removed_indices=list(removed)
    )
    return StagedWrite(table.address, table, operation, table.count_rows())
