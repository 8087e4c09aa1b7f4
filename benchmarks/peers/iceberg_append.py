"""Iceberg by way of pyiceberg and a catalog in SQLite; runs in the peers' environment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import person
import pyiceberg
from pyiceberg.catalog.sql import SqlCatalog

VERSION = f"pyiceberg {pyiceberg.__version__}"


def load(place: Path) -> Callable[[str, str], Any]:
    """An empty table, and a handle on it that stays open."""
    place.mkdir()
    uri, warehouse = f"sqlite:///{place / 'catalog.db'}", place.as_uri()
    catalog = SqlCatalog("bench", uri=uri, warehouse=warehouse)
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.person", schema=person.SCHEMA)
    return person.tasks(table.append, lambda: table.scan().count())
