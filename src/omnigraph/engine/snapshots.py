"""The data of a snapshot: each table opened at the version that the snapshot pins."""

from __future__ import annotations

from functools import cache

from omnigraph.engine.protocol import Data
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.tables import TableKey
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table


def data_at(store: Store, snapshot: Snapshot) -> Data:
    """The rows of one commit; a table is opened when a plan first reads it."""

    @cache
    def table(key: TableKey) -> Table:
        return store.tables.open_pin(snapshot.pin(key))

    return Data(table)
