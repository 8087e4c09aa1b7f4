"""Indexes built on Spark: executors index groups of fragments and join the segments they built.

The driver gets segments: names of files that nothing refers to until they are committed. A task
that runs twice leaves files that nothing names; so does an interrupted run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from omnigraph.choices import IndexKind
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.jobs import Follow, Jobs
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.relations import pack
from omnigraph.limits import INDEX_SEGMENT_ROWS_MAX, INDEX_SEGMENTS_MAX
from omnigraph.maintenance.indexes import TableUpkeep, Upkeep
from omnigraph.model.tables import TableKey
from omnigraph.storage.indexes import (
    Gap,
    IndexSpec,
    Segment,
    build_segment,
    discard_segments,
    has_vectors,
    is_joinable,
    learn_model,
    stage_segments,
)
from omnigraph.storage.scans import open_address
from omnigraph.storage.segments import Crowd, join_crowd, plan_segments
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table, TableAddress
from omnigraph.storage.vector_models import VectorModel
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import Stage

INDEX_PART_ROWS_MAX: Final = 1 << 22
"""Rows that one Spark task indexes. With more rows, a few segments of an index stay as they are: to
join them takes as long as to build them."""


@dataclass(frozen=True, slots=True)
class IndexPart:
    """Fragments of one index that one task reads.

    Attributes:
        model: Of vectors, what the parts of the index share.
    """

    address: TableAddress
    gap: Gap
    row_count: int
    model: VectorModel | None = None

    @property
    def index(self) -> tuple[TableAddress, IndexSpec]:
        """The table and the index that it is a part of."""
        return self.address, self.gap.spec


@dataclass(frozen=True, slots=True)
class BuildTask:
    """All an executor needs to index fragments; `groups` says which parts each task builds."""

    parts: tuple[IndexPart, ...]
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Segments of one index that are joined to one.

    Attributes:
        gap: What is built in their place, if they are not joined as they are.
    """

    address: TableAddress
    segments: tuple[Segment, ...]
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class SparkIndexing:
    """Builds the indexes of one run, all tables at once.

    A table is built when the run is planned, or, where the branch has no ref of it yet, when it is
    staged. What was staged for a table that has not moved is used by later plans, too.
    """

    session: SparkSession
    run_id: str
    follow: Follow | None = None
    _built: dict[TableAddress, list[Segment]] = field(default_factory=dict)
    _staged: dict[TableAddress, StagedWrite] = field(default_factory=dict)

    def __call__(self, view: View, upkeep: Upkeep) -> dict[TableKey, Stage]:
        """How to stage each table."""
        snapshot = view.snapshot
        owned = {key: view.data.table(key) for key in upkeep if snapshot.owns(snapshot.pin(key))}
        self._build({table.address: (table, upkeep[key].gaps) for key, table in owned.items()})
        return {key: partial(self._stage, own) for key, own in upkeep.items()}

    def _stage(self, upkeep: TableUpkeep, table: Table) -> StagedWrite:
        staged = self._staged.get(table.address)
        if staged is None:
            self._build({table.address: (table, upkeep.gaps)})
            built = self._built.get(table.address, ())
            change = plan_segments(table, upkeep.kept_specs, built, self._join)
            staged = stage_segments(table, change.new, removed=change.removed)
            self._staged[table.address] = staged
        return staged

    def _join(self, table: Table, crowds: Sequence[Crowd]) -> list[Segment]:
        bundles = [Bundle(table.address, crowd.segments, crowd.gap(table)) for crowd in crowds]
        jobs = Jobs(self.session, f"omnigraph-{self.run_id}", "joining indexes")
        return jobs.run(partial(join_bundles, self.session, bundles), self.follow)

    def _build(self, wanted: Mapping[TableAddress, tuple[Table, tuple[Gap, ...]]]) -> None:
        new = {address: pair for address, pair in wanted.items() if address not in self._built}
        jobs = Jobs(self.session, f"omnigraph-{self.run_id}", "building indexes")
        self._built.update(build_on_spark(jobs, new, self.follow))


def build_on_spark(
    jobs: Jobs,
    wanted: Mapping[TableAddress, tuple[Table, tuple[Gap, ...]]],
    follow: Follow | None,
) -> dict[TableAddress, list[Segment]]:
    """Build the segments of the gaps of some tables, and join those of one index."""
    cores = core_count(jobs.session)
    parts = [part for table, gaps in wanted.values() for part in plan_parts(table, gaps, cores)]
    if not parts:
        return {}
    models = jobs.run(partial(learn_models, jobs.session, parts), follow)
    parts = [replace(part, model=models.get(part.index)) for part in parts]
    built = jobs.run(partial(build_parts, jobs.session, parts, cores), follow)
    bundles = bundle_segments(built)
    joined = jobs.run(partial(join_bundles, jobs.session, bundles), follow)
    segments: dict[TableAddress, list[Segment]] = {}
    for bundle, segment in zip(bundles, joined, strict=True):
        segments.setdefault(bundle.address, []).append(segment)
        if len(bundle.segments) > 1:
            # Nothing refers to them, and all tasks that read them have ended.
            discard_segments(bundle.address, bundle.segments)
    return segments


def plan_parts(table: Table, gaps: Sequence[Gap], cores: int) -> Iterator[IndexPart]:
    """Cut gaps into groups of fragments that are neither tiny nor huge."""
    rows = {fragment.id: fragment.num_rows for fragment in table.fragments()}
    for gap in gaps:
        if not is_joinable(gap.spec):
            yield IndexPart(table.address, gap, sum(rows[id_] for id_ in gap.fragments))
            continue
        row_counts = [rows[id_] for id_ in gap.fragments]
        # All gaps are filled at once: the cores are shared by them.
        for group in pack(row_counts, -(-cores // len(gaps)), rows_max=INDEX_PART_ROWS_MAX):
            ids = tuple(gap.fragments[place] for place in group)
            yield IndexPart(table.address, Gap(gap.spec, ids), sum(rows[id_] for id_ in ids))


def learn_models(
    session: SparkSession, parts: Sequence[IndexPart]
) -> dict[tuple[TableAddress, IndexSpec], VectorModel]:
    """What the parts of each index of vectors share, if it has several; executors learn it."""
    shared: list[IndexPart] = []
    for _, group in groupby(parts, key=lambda part: part.index):
        first, *others = group
        if others and first.gap.spec.kind is IndexKind.VECTOR:
            fragments = (id_ for part in (first, *others) for id_ in part.gap.fragments)
            shared.append(replace(first, gap=Gap(first.gap.spec, tuple(fragments))))
    if not shared:
        return {}
    numbers = session.range(0, len(shared), 1, numPartitions=len(shared))
    messages = numbers.mapInArrow(partial(learn_numbered, tuple(shared)), MESSAGE)
    return {shared[number].index: model for number, model in collect_messages(messages)}


def learn_numbered(
    parts: tuple[IndexPart, ...], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Learn the models of the indexes with these numbers. Runs in an executor."""
    with report_errors():
        for number in read_numbers(numbers):
            part = parts[number]
            yield to_message((number, learn_model(open_address(part.address), part.gap)))


def build_parts(
    session: SparkSession, parts: Sequence[IndexPart], cores: int
) -> list[tuple[IndexPart, Segment]]:
    """Each part with its segment, in their order; small parts share a task.

    A part of an index of vectors that has none of them gets no segment: it is scanned.
    """
    groups = pack([part.row_count for part in parts], cores)
    task = BuildTask(tuple(parts), groups)
    numbers = session.range(0, len(groups), 1, numPartitions=len(groups))
    messages = numbers.mapInArrow(partial(build_groups, task), MESSAGE)
    segments: dict[int, Segment] = dict(collect_messages(messages))
    return [(parts[place], segments[place]) for place in sorted(segments)]


def build_groups(task: BuildTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Index the parts of these groups. Runs in an executor; safe to run twice."""
    with report_errors():
        for place in (place for number in read_numbers(numbers) for place in task.groups[number]):
            part = task.parts[place]
            table = open_address(part.address)
            if part.model is None or has_vectors(table, part.gap):
                yield to_message((place, build_segment(table, part.gap, part.model)))


def bundle_segments(built: Sequence[tuple[IndexPart, Segment]]) -> list[Bundle]:
    """The segments of each index in bundles that one task can join; few large ones stay."""
    bundles: list[Bundle] = []
    for _, group in groupby(built, key=lambda pair: pair[0].index):
        own = tuple(group)
        row_count = sum(part.row_count for part, _ in own)
        if len(own) <= INDEX_SEGMENTS_MAX // 2 and row_count > INDEX_PART_ROWS_MAX:
            bundles.extend(Bundle(part.address, (segment,)) for part, segment in own)
            continue
        held = 0
        bundle: list[Segment] = []
        for part, segment in own:
            if bundle and held + part.row_count > INDEX_SEGMENT_ROWS_MAX:
                bundles.append(Bundle(part.address, tuple(bundle)))
                held, bundle = 0, []
            held += part.row_count
            bundle.append(segment)
        bundles.append(Bundle(part.address, tuple(bundle)))
    return bundles


def join_bundles(session: SparkSession, bundles: Sequence[Bundle]) -> list[Segment]:
    """One segment for each bundle, in their order: a lookup reads every segment of an index."""
    many = [place for place, bundle in enumerate(bundles) if len(bundle.segments) > 1]
    joined: dict[int, Segment] = {}
    if many:
        task = tuple(bundles[place] for place in many)
        numbers = session.range(0, len(task), 1, numPartitions=len(task))
        messages = collect_messages(numbers.mapInArrow(partial(join_numbered, task), MESSAGE))
        joined = {many[number]: segment for number, segment in messages}
    return [joined.get(place, bundle.segments[0]) for place, bundle in enumerate(bundles)]


def join_numbered(
    bundles: tuple[Bundle, ...], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Join the bundles with these numbers. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in read_numbers(numbers):
            bundle = bundles[number]
            segment = join_crowd(open_address(bundle.address), bundle.segments, bundle.gap)
            yield to_message((number, segment))


def read_numbers(numbers: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """The numbers that a task was given: of groups, or of bundles."""
    return (number for batch in numbers for number in batch.column(0).to_pylist())
