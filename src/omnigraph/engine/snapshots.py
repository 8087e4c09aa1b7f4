"""The data of a snapshot: each table opened at the version that the snapshot pins."""

from __future__ import annotations

from omnigraph.engine.protocol import Data
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.tables import TableKey
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table


def data_at(store: Store, snapshot: Snapshot) -> Data:
    """The rows of one commit; a table is opened when a plan first reads it."""
    opened: dict[TableKey, Table] = {}

    def table(key: TableKey) -> Table:
        if key not in opened:
            opened[key] = store.tables.open_pin(snapshot.pin(key))
        return opened[key]

    return Data(table)
