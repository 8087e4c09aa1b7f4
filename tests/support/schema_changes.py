"""Schema changes made by hand: columns by Lance's own commands, and one publish."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import lance
import pyarrow as pa

from omnigraph.clock import SystemClock
from omnigraph.graph import Graph
from omnigraph.manifest import schemas
from omnigraph.manifest.drafts import CommitDraft, DropTable, PinTable, SetSchema
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import OperationKind
from omnigraph.model.identities import TypeIdentity, free_origin
from omnigraph.model.ids import CommitId, TableId
from omnigraph.model.names import MAIN, BranchName, TypeName
from omnigraph.model.tables import TableKey, TablePin, Tombstone, table_location
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.schema.parser import parse_schema
from omnigraph.storage import staging
from tests.support.tables import applied

Reshape: TypeAlias = Callable[[lance.LanceDataset], None]
"""Changes the columns of a table; each command is a version of its own."""

_clock = SystemClock()


def rename(**names: str) -> Reshape:
    """Rename columns: the old name is that of the argument."""

    def reshape(dataset: lance.LanceDataset) -> None:
        _alter(dataset, *({"path": old, "name": new} for old, new in names.items()))

    return reshape


def cast(name: str, kind: pa.DataType) -> Reshape:
    """Convert a column."""
    return lambda dataset: _alter(dataset, {"path": name, "data_type": kind})


def require(name: str) -> Reshape:
    """Forbid nulls in a column."""
    return lambda dataset: _alter(dataset, {"path": name, "nullable": False})


def add(name: str, kind: pa.DataType, value: str | None = None) -> Reshape:
    """Add a column of nulls, which needs no file, or of the value of a SQL expression."""
    if value is None:
        return lambda dataset: dataset.add_columns(pa.field(name, kind))
    return lambda dataset: dataset.add_columns({name: value})


def drop(*names: str) -> Reshape:
    """Drop columns."""
    return lambda dataset: dataset.drop_columns(list(names))


def _alter(dataset: lance.LanceDataset, *columns: dict[str, Any]) -> None:
    # Lance declares the type of one column as that of all.
    dataset.alter_columns(*columns)  # type: ignore[arg-type]


def change_schema(
    graph: Graph,
    text: str,
    reshapes: Mapping[str, tuple[Reshape, ...]] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    properties: Mapping[str, Mapping[str, str | None]] | None = None,
    branch: str = MAIN,
) -> str:
    """Give a branch another schema, and return the commit.

    Args:
        reshapes: By the new name of a type, what is done to its table. On another branch than main,
            the branch must have written to the table before.
        types: By the new name of a type, its old name, where that is another one.
        properties: By the new name of a type and of a property, the old name, where that is another
            one; None for a new property that has the name of a dropped one.
    """
    now = graph.snapshot(branch=branch)
    old, new = graph._catalogs.of(now.schema_digest), parse_schema(text)
    pins = []
    for type_ in new.types:
        key = type_.table_key
        was = TableKey(key.kind, TypeName((types or {}).get(type_.name, type_.name)))
        if was not in now.pins:
            pins.append(_create(graph, type_, now))
            continue
        pin = _reshape(graph, now.pin(was), (reshapes or {}).get(type_.name, ()))
        names = (properties or {}).get(type_.name, {})
        pins.append(replace(pin, key=key, identity=_identity(pin, old.type_of(was), type_, names)))
    publication = CommitDraft(
        BranchName(branch),
        CommitId(_clock.ulid()),
        OperationKind.SCHEMA_APPLY,
        changes=(
            *map(PinTable, pins),
            *map(DropTable, _tombstones(now, pins)),
            SetSchema(_keep(graph, new, text)),
        ),
    )
    return publish(graph._manifest, _clock, publication).commit_id


def _keep(graph: Graph, catalog: Catalog, text: str) -> str:
    return schemas.keep(graph._store.objects, AcceptedSchema(catalog, text))


def _identity(
    pin: TablePin, old: SchemaType, new: SchemaType, names: Mapping[str, str | None]
) -> TypeIdentity:
    before = [own.name for own in old.properties]
    after = {
        own.name: names.get(own.name, own.name if own.name in before else None)
        for own in new.properties
    }
    return pin.identity.evolve(before, after)


def _reshape(graph: Graph, pin: TablePin, reshapes: tuple[Reshape, ...]) -> TablePin:
    if not reshapes:
        return pin
    dataset = lance.dataset(graph._store.tables.uri(pin.location))
    dataset = dataset.checkout_version((pin.ref, pin.version))
    for reshape in reshapes:
        reshape(dataset)
    return replace(pin, version=dataset.version)


def _create(graph: Graph, type_: SchemaType, now: Snapshot) -> TablePin:
    key, table_id = type_.table_key, TableId(_clock.ulid())
    location = table_location(key.kind, table_id)
    rows = table_schema(type_).empty_table()
    table = applied(staging.stage_create(graph._store.tables, location, rows))
    taken = [pin.identity.origin for pin in now.pins.values()]
    taken += [tombstone.origin for tombstone in now.tombstones]
    origin = free_origin(type_.name, taken)
    return TablePin(table_id, key, location, table.version, None, 0, TypeIdentity(origin))


def _tombstones(now: Snapshot, pins: list[TablePin]) -> tuple[Tombstone, ...]:
    kept = {pin.table_id for pin in pins}
    return tuple(
        Tombstone(pin.table_id, pin.key, pin.location, pin.version, pin.ref, pin.identity.origin)
        for pin in now.pins.values()
        if pin.table_id not in kept
    )
