"""Compaction: the rows of some fragments in fewer new ones, at other addresses.

Rows keep their row ids. Their row versions become upper bounds: Lance writes a run of bytes for
every change of the row version within a fragment into each further version of the table, so runs
are joined beyond a limit; and row ids, so these are written in their shortest form
(docs/decisions/0013).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from lance import LanceOperation
from lance.fragment import RowIdSequence
from lance.optimize import Compaction, CompactionOptions, CompactionTask

from omnigraph.choices import IndexKind
from omnigraph.limits import (
    BYTES_PER_FILE_MAX,
    ROW_ID_BYTES_MAX,
    ROWS_PER_FILE_MAX,
    SORTED_IN_MEMORY_BYTES_MAX,
)
from omnigraph.storage import truncation
from omnigraph.storage.columns import is_blob
from omnigraph.storage.dropped_columns import find_stale_fragments
from omnigraph.storage.indexes import Segment, highest_fragment_id, read_indexes
from omnigraph.storage.lance_messages import encode_row_id_ranges, encode_row_versions
from omnigraph.storage.pairs import deletions_of, files_of
from omnigraph.storage.staging import StagedWrite, write_files
from omnigraph.storage.tables import ROW_ID, ROW_VERSION, Fragment, Table
from omnigraph.storage.translate import translate_errors

ROW_VERSION_RUNS_MIN: Final = 4
ROW_VERSION_RUNS_MAX: Final = 64
ROW_VERSION_RUN_ROWS_MIN: Final = 1 << 10
"""Runs of row versions that a rewritten fragment keeps, one for so many rows, within the bounds."""


_CREATED: Final = "_row_created_at_version"

_RANGE_ROWS_MIN: Final = 2
"""Rows of a range of row ids, on average, below which a list of them is shorter."""


@dataclass(frozen=True, slots=True)
class FragmentSize:
    """How much a fragment holds.

    Attributes:
        row_count: Its rows, without deleted ones.
        byte_count: The size of its data files.
        row_id_bytes: The size of its row ids, which every version of the table stores again.
        is_inherited: Whether it shares files with the table that the branch was created from.
        is_stale: Whether its files hold values of columns that the table has no more.
    """

    fragment_id: int
    row_count: int
    deleted_count: int
    byte_count: int
    row_id_bytes: int = 0
    is_inherited: bool = False
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Fragments of a table, and new files that hold their rows; small, for any process.

    Attributes:
        after: The new fragments; none where no row was left. They have no number yet.
    """

    before: tuple[Fragment, ...]
    after: tuple[Fragment, ...]

    @property
    def row_count(self) -> int:
        """How many rows were written."""
        return sum(fragment.physical_rows for fragment in self.after)

    @property
    def byte_count(self) -> int:
        """The size of the files that the rows were read from."""
        return sum(map(_count_bytes, self.before))


def rewrite_fragments(
    table: Table, fragment_ids: Sequence[int], *, row_id_bytes_max: int = ROW_ID_BYTES_MAX
) -> Rewrite:
    """Write the rows of these fragments to new files, which are still unreferenced.

    Deleted rows, and columns that the table has no more, are left out. Rows keep their order,
    unless their row ids take much less space when they are sorted. Safe to run in any process and
    to run twice: only files named in a staged write count.

    Args:
        row_id_bytes_max: The size of row ids from which on it is worth it to sort rows.
    """
    wanted = frozenset(fragment_ids)
    # A table has its fragments in the order of their numbers.
    before = table.open_fragments(sorted(wanted))
    assert len(before) == len(wanted), "the fragments were found in this same version"
    metadata = tuple(fragment.metadata for fragment in before)
    with translate_errors("compacting", table.address.uri):
        rows = table.handle.scanner([ROW_ID, ROW_VERSION, _CREATED], fragments=before).to_table()
    if _is_worth_sorting(table, metadata, rows[ROW_ID].to_numpy(), row_id_bytes_max):
        rows = _sort(rows)
        values = table.read([*table.schema.names, ROW_ID], fragment_ids=wanted)
        written = write_files(table, _sort(values).select(table.schema.names))
    else:
        with translate_errors("compacting", table.address.uri):
            written = tuple(_make_task(table, metadata).execute(table.handle).new_fragments)
        truncation.require_data(table.address, written)
    return Rewrite(metadata, tuple(_describe_rows(written, rows)))


def measure_fragments(table: Table) -> tuple[FragmentSize, ...]:
    """The sizes of a table's fragments, in table order. Reads nothing."""
    stale = {fragment.id for fragment in find_stale_fragments(table)}
    return tuple(
        FragmentSize(
            fragment.id,
            fragment.num_rows,
            fragment.num_deletions,
            _count_bytes(fragment),
            _count_row_id_bytes(fragment),
            is_inherited=any(file.base_id is not None for file in fragment.files),
            is_stale=fragment.id in stale,
        )
        for fragment in table.fragments()
    )


def find_current(table: Table, rewrites: Sequence[Rewrite]) -> list[Rewrite]:
    """Those whose fragments the table still has, with the same rows."""
    if not rewrites:
        return []
    current = {fragment.id: _rows_of(fragment) for fragment in table.fragments()}
    return [
        rewrite
        for rewrite in rewrites
        if all(current.get(part.id) == _rows_of(part) for part in rewrite.before)
    ]


def stage_rewrites(table: Table, rewrites: Iterable[Rewrite]) -> StagedWrite:
    """Prepare to replace fragments by their rewrites.

    The new fragments get numbers that no fragment of the table ever had: an index remembers the
    numbers of the fragments that it covered. Indexes do not cover the new ones (`index_rewrites`),
    except those for search that covered all that was rewritten.
    """
    rewrites = tuple(rewrites)
    numbers = count(highest_fragment_id(table) + 1)
    groups = [
        LanceOperation.RewriteGroup(
            old_fragments=list(rewrite.before),
            new_fragments=[
                _alter(fragment, {"id": number})
                for fragment, number in zip(rewrite.after, numbers, strict=False)
            ],
        )
        for rewrite in rewrites
    ]
    operation = LanceOperation.Rewrite(groups=groups, rewritten_indices=[])
    row_count = table.count_rows()
    narrower = _narrow_segments(table, rewrites)
    if narrower is None:
        return StagedWrite(table.address, table, operation, row_count)
    return StagedWrite(table.address, table, narrower, row_count, followed_by=(operation,))


def _narrow_segments(
    table: Table, rewrites: Sequence[Rewrite]
) -> LanceOperation.CreateIndex | None:
    """Take fragments out of segments that cover others of their group, and not all of it.

    Lance rewrites no such group if the segment names rows by their ids (docs/substrate.md).
    """
    groups = [frozenset(fragment.id for fragment in rewrite.before) for rewrite in rewrites]
    narrow: list[Segment] = []
    removed: list[Segment] = []
    for index in read_indexes(table):
        if index.spec is None or index.spec.kind is IndexKind.BTREE:
            continue
        for segment in index.segments:
            covered = frozenset(segment.fragment_ids)
            split = (group & covered for group in groups if not group <= covered)
            left = covered.difference(*split)
            if left != covered:
                removed.append(segment)
                # Lance takes sets, too.
                fewer = replace(segment, fragment_ids=left)  # type: ignore[arg-type]
                narrow += [fewer] if left else []
    if not removed:
        return None
    return LanceOperation.CreateIndex(new_indices=narrow, removed_indices=removed)


def index_rewrites(
    staged: StagedWrite, segments: Sequence[Segment], removed: Sequence[Segment] = ()
) -> StagedWrite:
    """The same write, followed by index segments that were built on its preview.

    Args:
        removed: Segments that cover no fragment any more.
    """
    if not segments and not removed:
        return staged
    # They name the preview's version, which is never published.
    version = staged.version
    own = [replace(segment, dataset_version=version) for segment in segments]
    operation = LanceOperation.CreateIndex(new_indices=own, removed_indices=list(removed))
    return replace(staged, followed_by=(*staged.followed_by, operation))


def _make_task(table: Table, fragments: Sequence[Fragment]) -> CompactionTask:
    """A task of Lance's for exactly these fragments, where its own plan may choose others."""
    facts = {
        "task": {"fragments": [fragment.to_json() for fragment in fragments]},
        "read_version": table.version,
        "options": {
            **_task_options(),
            "data_storage_version": table.handle.data_storage_version,
        },
    }
    # Missing from Lance's own stubs, like `json` below.
    task: CompactionTask = CompactionTask.from_json(json.dumps(facts))  # type: ignore[attr-defined]
    return task


@cache
def _task_options() -> dict[str, Any]:
    """All options of a task, as this release of Lance spells them, from a plan of its own."""
    rows = pa.table({"number": [1, 2]})
    tiny = lance.write_dataset(rows, "memory://", max_rows_per_file=1, enable_stable_row_ids=True)
    options: CompactionOptions = {
        "target_rows_per_fragment": ROWS_PER_FILE_MAX,
        "max_bytes_per_file": BYTES_PER_FILE_MAX,
        "materialize_deletions": True,
        "compaction_mode": "reencode",
    }
    plan = Compaction.plan(tiny, options)
    return dict(json.loads(plan.tasks[0].json())["options"])  # type: ignore[attr-defined]


def _count_bytes(fragment: Fragment) -> int:
    return sum(file.file_size_bytes or 0 for file in fragment.files)


def _count_row_id_bytes(fragment: Fragment) -> int:
    meta = fragment.row_id_meta
    return 0 if meta is None else _count_bytes_of_text(meta.json())


def _count_bytes_of_text(encoded: str) -> int:
    """The size of row ids that are a text of numbers, one for each byte."""
    return encoded.count(",") + 1


def _is_worth_sorting(
    table: Table, fragments: Sequence[Fragment], row_ids: np.ndarray, row_id_bytes_max: int
) -> bool:
    """Whether sorted row ids take much less space, and the rows fit into memory.

    Rows that were updated one by one are far from their neighbours. Once they are among them again,
    their row ids are a few ranges. But then row versions have more runs than are kept, so that rows
    which did not change look as if they did, and merges read them: fewer row ids keep their order.
    """
    encoded = _encode_row_ids(row_ids)
    if _count_bytes_of_text(encoded) <= row_id_bytes_max:
        return False
    # Blobs are best left to Lance, which copies them without holding them.
    is_large = sum(map(_count_bytes, fragments)) > SORTED_IN_MEMORY_BYTES_MAX
    if is_large or any(map(is_blob, table.schema)):
        return False
    return 2 * len(_encode_row_ids(np.sort(row_ids))) < len(encoded)


def _sort(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array(np.argsort(rows[ROW_ID].to_numpy())))


def _rows_of(fragment: Fragment) -> tuple[object, ...]:
    """The identity of the rows of a fragment: files never change, and names are not reused."""
    return (*files_of(fragment), deletions_of(fragment))


def _describe_rows(fragments: Iterable[Fragment], rows: pa.Table) -> Iterator[Fragment]:
    """The fragments with the row ids of these rows, and few runs of their row versions."""
    row_ids, changed, created = (rows[name].to_numpy() for name in (ROW_ID, ROW_VERSION, _CREATED))
    first = 0
    for fragment in fragments:
        own = slice(first, first + fragment.physical_rows)
        first = own.stop
        facts = {
            "row_id_meta": json.loads(_encode_row_ids(row_ids[own])),
            "last_updated_at_version_meta": encode_row_versions(join_runs(changed[own])),
            "created_at_version_meta": encode_row_versions(join_runs(created[own])),
        }
        yield _alter(fragment, facts)
    assert first == len(changed), "a rewrite keeps every live row"


def _encode_row_ids(row_ids: np.ndarray) -> str:
    """Row ids as the metadata of a fragment, in the shorter of two forms.

    Lance makes a list of numbers of what is not one range. Ranges one after the other are shorter
    where they are long.
    """
    texts = [RowIdSequence(pa.array(row_ids)).to_inline_metadata().json()]
    starts = np.flatnonzero(np.append(True, np.diff(row_ids) != 1))
    if 1 < len(starts) < len(row_ids) / _RANGE_ROWS_MIN:
        ends = np.append(starts[1:], len(row_ids))
        texts.append(encode_row_id_ranges(row_ids[starts], row_ids[ends - 1] + 1))
    return min(texts, key=len)


def join_runs(versions: np.ndarray) -> list[tuple[int, int]]:
    """Runs of (row count, row version), joined under their highest version if they are too many.

    Half of them are as long as each other. The rest end where most rows would be raised: a few rows
    that were written late do not raise many old ones before them.

    >>> join_runs(np.array([7, 7, 9], np.uint64))
    [(2, 7), (1, 9)]
    >>> join_runs(np.array([1] * 90 + [2, 3, 4, 5, 6, 7, 8, 9], np.uint64))
    [(90, 1), (7, 8), (1, 9)]
    """
    runs_max = len(versions) // ROW_VERSION_RUN_ROWS_MIN
    runs_max = min(max(runs_max, ROW_VERSION_RUNS_MIN), ROW_VERSION_RUNS_MAX)
    starts = _find_starts(versions)
    if len(starts) > runs_max:
        even_count = -(-runs_max // 2)
        even = np.arange(even_count) * len(versions) // even_count
        starts = np.union1d(even, _costliest(versions, starts, runs_max - even_count))
    highest = np.maximum.reduceat(versions, starts)
    lengths = np.diff(np.append(starts, len(versions)))
    starts = _find_starts(highest)
    return list(
        zip(np.add.reduceat(lengths, starts).tolist(), highest[starts].tolist(), strict=True)
    )


def _find_starts(versions: np.ndarray) -> np.ndarray:
    """Where another version begins."""
    return np.flatnonzero(np.append(True, versions[1:] != versions[:-1]))


def _costliest(versions: np.ndarray, starts: np.ndarray, count: int) -> np.ndarray:
    """The starts of runs that would raise most rows if they were joined with the run before."""
    lengths = np.diff(np.append(starts, len(versions)))
    is_later = versions[starts[1:]] > versions[starts[:-1]]
    raised = np.where(is_later, lengths[:-1], lengths[1:])
    chosen: np.ndarray = starts[1:][np.argsort(raised)[len(raised) - count :]]
    return chosen


def _alter(fragment: Fragment, facts: dict[str, Any]) -> Fragment:
    return Fragment.from_json(json.dumps({**fragment.to_json(), **facts}))
