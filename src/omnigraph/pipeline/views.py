"""Views to read from: a snapshot of a graph and its catalog, captured together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from omnigraph.engine.protocol import Data
from omnigraph.manifest import schemas
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from omnigraph.transaction.work import View


def view_of(store: Store, snapshot: Snapshot) -> View:
    """The graph at a snapshot, as whoever reads all of it needs it."""

    def opened(key: TableKey) -> Table:
        pin = snapshot.pin(key)
        return store.tables.open(pin.location, ref=pin.ref, version=pin.version)

    catalog = schemas.load(store.objects, snapshot.schema_digest).catalog
    return View(snapshot, catalog, Data(cache(opened)))


def chosen_types(catalog: Catalog, names: Iterable[str] | None) -> tuple[SchemaType, ...]:
    """The types of these names, or all, in the catalog's order.

    Raises:
        TypeNotFoundError: the schema has no type of a name.
    """
    if names is None:
        return tuple(catalog.types)
    wanted = {catalog.type_named(name).name for name in names}
    return tuple(each for each in catalog.types if each.name in wanted)
