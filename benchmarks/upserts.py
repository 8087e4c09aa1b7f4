"""Upserts: a tenth of a table's people merged into it, by us, by bare Lance and by Delta Lake."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import inputs, social
from benchmarks.peers.process import Peer
from benchmarks.rounds import Answer, UnableError, timed
from omnigraph import graph

PERSON: Final = "Person"

# Lance's own bound of memory is too low for its own merge of 200,000 rows into 2 million.
os.environ.setdefault("LANCE_MEM_POOL_SIZE", str(8 << 30))


def fill(place: Path, files: Path, *, index: bool) -> None:
    """A graph that has the base, from one load."""
    made = graph.init(place, inputs.SCHEMA)
    made.load(files / "base", engine="spark", index=index)


def ours(base: Path, files: Path, copy: Path, *, engine: str) -> Callable[[], Answer]:
    """A load in mode `merge`, into a copy of the graph that no one has touched."""

    def run() -> Answer:
        shutil.copytree(base, copy)
        made = graph.open(copy)
        found = timed(
            lambda: made.load(files / "changes", mode="merge", engine=engine, index=False),
            lambda _: [(social.pinned(made, PERSON).count_rows(),)],
        )
        shutil.rmtree(copy)
        return found

    return run


def bare(base: Path, files: Path, copy: Path) -> Callable[[], Answer]:
    """`merge_insert` by id into the very table that such a graph has, and no commit of a graph."""

    def run() -> Answer:
        shutil.copytree(base, copy)
        dataset = social.pinned(graph.open(copy), PERSON)

        def merge() -> None:
            rows = pq.read_table(files / "changes" / f"{PERSON}.parquet")
            rows = rows.add_column(0, "id", rows["name"]).select(dataset.schema.names)
            merger = dataset.merge_insert("id")
            merger = merger.when_matched_update_all().when_not_matched_insert_all()
            try:
                merger.execute(rows.cast(pa.schema(dataset.schema)))
            except OSError as cause:
                raise UnableError(str(cause).splitlines()[0]) from cause

        found = timed(merge, lambda _: [(dataset.count_rows(),)])
        shutil.rmtree(copy)
        return found

    return run


def delta(peer: Peer, files: Path, *, seconds_max: float) -> Callable[[], Answer]:
    """The `merge` of deltalake by name, into a copy of a table that it wrote itself."""
    is_filled = False

    def run() -> Answer:
        nonlocal is_filled
        if not is_filled:
            base = str(files / "base" / f"{PERSON}.parquet")
            peer.ask("fill", base, seconds_max=seconds_max)
            is_filled = True
        peer.ask("copy", seconds_max=seconds_max)
        changes = str(files / "changes" / f"{PERSON}.parquet")
        seconds, _ = peer.ask("merge", changes, seconds_max=seconds_max)
        return seconds, peer.ask("count", seconds_max=seconds_max)[1]

    return run
