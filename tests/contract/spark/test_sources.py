"""Sources that executors read: what is cut alike becomes pieces together, equal keys one key."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from omnigraph.engine.spark.pieces import by_key, collect_parts
from omnigraph.engine.spark.sources import SourceRead, cut_sources
from omnigraph.integrity.proofs.by_key_counts import KeyCut, KeyShape, _Buckets
from omnigraph.integrity.proofs.key_facts import KEY

BUCKETS = 4


@dataclass(frozen=True, slots=True)
class Numbers:
    """Rows with numbers as texts."""

    first: int
    row_count: int

    def read(self, columns: Sequence[str]) -> pa.Table:
        texts = [str(number) for number in range(self.first, self.first + self.row_count)]
        return pa.table(dict.fromkeys(columns, pa.array(texts, pa.utf8())))


def cut_ids(rows: pa.Table, *, part: int) -> Iterator[pa.RecordBatch]:
    """Pieces of the only column, whatever it is called."""
    return by_key(rows.rename_columns(["id"]), key="id", count=BUCKETS, part=part)


def test_files_that_are_cut_alike_make_one_piece_for_each_task() -> None:
    own, others = (partial(cut_ids, part=part) for part in range(2))
    files = [Numbers(0, 100), Numbers(100, 0), Numbers(100, 50)]
    unit = (
        *(SourceRead(file, ("id",), own) for file in files),
        SourceRead(Numbers(7, 1), ("id",), others),
        SourceRead(Numbers(8, 1), ("src",), others),
    )
    numbers = pa.record_batch({"id": pa.array([0], pa.int64())})

    pieces = list(cut_sources((unit,), iter([numbers])))

    assert len(pieces) == BUCKETS + 2
    parts = collect_parts(pieces)
    found = [text for tables in parts.values() for text in tables[0]["id"].to_pylist()]
    assert sorted(found, key=int) == [str(number) for number in range(150)]
    more = [
        text for tables in parts.values() if 1 in tables for text in tables[1]["id"].to_pylist()
    ]
    assert sorted(more) == ["7", "8"]


def test_a_node_that_many_edges_need_is_sent_once() -> None:
    ends = pa.table({"src": ["hub"] * 1000 + ["a", None, "b"]})
    buckets = _Buckets(first=0, own_count=BUCKETS, count=BUCKETS)
    found = {}
    for is_distinct in (True, False):
        cut = KeyCut(KeyShape(), buckets, 2, known=None, keeps_known=False, is_distinct=is_distinct)
        parts = collect_parts(cut(ends))
        keys = (tables[2][KEY].to_pylist() for tables in parts.values())
        found[is_distinct] = sorted(key for some in keys for key in some)

    assert found[True] == ["a", "b", "hub"]
    assert len(found[False]) == 1002
