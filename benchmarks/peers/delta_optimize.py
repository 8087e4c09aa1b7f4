"""Delta Lake by way of deltalake, compacting small files; runs in the peers' environment."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

VERSION = f"deltalake {deltalake.__version__}"


def load(place: Path) -> Callable[[str, str], Any]:
    """Nothing yet; every compaction is of a copy of the same table."""
    base, copy = place / "delta-base", place / "delta"

    def run(task: str, text: str) -> pa.Table | None:
        match task:
            case "fill":
                source, _, count = text.rpartition(":")
                rows = pq.read_table(source)
                share = -(-rows.num_rows // int(count))
                base.mkdir(parents=True)
                for first in range(0, rows.num_rows, share):
                    pq.write_table(rows.slice(first, share), base / f"{first}.parquet")
                # All files in one commit, as in the graph.
                deltalake.convert_to_deltalake(base)
            case "copy":
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(base, copy)
            case "optimize":
                deltalake.DeltaTable(copy).optimize.compact()
            case "count":
                return pa.table({"rows": [deltalake.DeltaTable(copy).count()]})
        return None

    return run
