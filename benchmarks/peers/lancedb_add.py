"""LanceDB, a row at a time; runs in the peers' environment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import person

VERSION = f"lancedb {lancedb.__version__}"


def load(place: Path) -> Callable[[str, str], Any]:
    """An empty table, and a handle on it that stays open."""
    table = lancedb.connect(place).create_table("person", schema=person.SCHEMA)
    return person.tasks(lambda rows: table.add(rows, mode="append"), table.count_rows)
