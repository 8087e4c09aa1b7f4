"""Recall: how many of the ten nearest a vector index finds, in clusters and anywhere.

python -m benchmarks.recall [--rows N]
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import report
from benchmarks.documents import Documents, Size, share_found, write_graph

ROWS: Final = 60_000
QUERIES: Final = 20
DIMENSIONS: Final = (256, 1_536)
KINDS: Final = ("ivf_flat", "ivf_pq")
"""What loads build by themselves, of fewer rows and of more."""

READING: Final = """\
Of the ten nearest by the cosine, those that a query finds through an index of this kind. In
clusters, a thousand vectors are around each centre; random ones are anywhere, which no data is."""

_QUERY: Final = """\
query q($vector: Vector({dimension})) {{
  match {{ $d: Doc }}
  return {{ $d.number as number, nearest($d.vector, $vector) as distance }}
  order {{ nearest($d.vector, $vector) }}
  limit 10
}}
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is indexed."""

    rows: int
    dimension: int
    clustered: bool
    kind: str


def measure(folder: Path, *, rows: int, kinds: tuple[str, ...] = KINDS) -> dict[Setting, float]:
    """The recall of each kind of vectors; long ones are fewer, so that they take as many bytes."""
    folder.mkdir()
    found = {}
    for setting in _settings(rows, kinds):
        size = Size(setting.rows, setting.dimension, clustered=setting.clustered)
        docs = Documents(size, queries=QUERIES)
        place = folder / "graph"
        made = write_graph(place, docs, kind=setting.kind)
        text = _QUERY.format(dimension=setting.dimension)
        shares = []
        for query in docs.queries:
            rows_found = made.query(text, {"vector": query.vector.tolist()}).rows()
            numbers = [row["number"] for row in rows_found]
            shares.append(share_found(numbers, -docs.distances(query)))
        found[setting] = float(np.mean(shares))
        shutil.rmtree(place)
    return found


def table(recalls: Mapping[Setting, float]) -> str:
    """A line for each setting."""
    rows = [
        [
            setting.kind,
            str(setting.dimension),
            "in clusters" if setting.clustered else "random",
            f"{setting.rows:,}",
            f"{share:.3f}",
        ]
        for setting, share in recalls.items()
    ]
    return report.table(["index", "dimensions", "vectors", "rows", "recall@10"], rows)


def _settings(rows: int, kinds: tuple[str, ...]) -> Iterator[Setting]:
    for kind in kinds:
        for dimension in DIMENSIONS:
            for clustered in (True, False):
                yield Setting(rows * DIMENSIONS[0] // dimension, dimension, clustered, kind)


def main() -> None:
    """Measure every kind of index, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--kinds", nargs="*", default=("ivf_pq", "ivf_flat", "ivf_hnsw_sq"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        print(table(measure(Path(folder, "recall"), rows=given.rows, kinds=tuple(given.kinds))))


if __name__ == "__main__":
    main()
