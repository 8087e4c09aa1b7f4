"""Delta Lake by way of deltalake, a row at a time; runs in the peers' environment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import person

VERSION = f"deltalake {deltalake.__version__}"


def load(place: Path) -> Callable[[str, str], Any]:
    """An empty table, and a handle on it that stays open."""
    table = deltalake.DeltaTable.create(place, deltalake.Schema.from_arrow(person.SCHEMA))
    return person.tasks(
        lambda rows: deltalake.write_deltalake(table, rows, mode="append"), table.count
    )
