"""Small Lance tables, and each kind of commit that can be staged on one."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.dataset import Index, Transaction
from lance.fragment import FragmentMetadata, RowIdSequence, write_fragments
from lance.schema import LanceSchema

SCHEMA: Final = pa.schema(
    [pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int64())]
)
OFFSET_BITS: Final = 32


def rows(*keys: str, value: int = 0) -> pa.Table:
    """One row per key, all with the same value."""
    return pa.table({"key": list(keys), "value": [value] * len(keys)}, schema=SCHEMA)


def create(uri: str, *keys: str, schema: pa.Schema = SCHEMA) -> LanceDataset:
    """Create a table with stable row ids at version 1, holding `keys` in one fragment."""
    table = rows(*keys).replace_schema_metadata(schema.metadata)
    fragments = write_fragments(table, uri, mode="create") if keys else []
    return LanceDataset.commit(
        uri,
        LanceOperation.Overwrite(schema, fragments),
        read_version=0,
        max_retries=0,
        enable_stable_row_ids=True,
    )


def commit(
    dataset: LanceDataset,
    operation: LanceOperation.BaseOperation,
    *,
    read_version: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> LanceDataset:
    """Commit on top of the version `dataset` is at, or of `read_version`, without retries."""
    transaction = Transaction(
        read_version=dataset.version if read_version is None else read_version,
        operation=operation,
        transaction_properties=dict(properties or {}),
    )
    return LanceDataset.commit(dataset, transaction, max_retries=0)


def keys_of(dataset: LanceDataset) -> list[str]:
    """The keys in scan order."""
    keys: list[str] = dataset.to_table(columns=["key"])["key"].to_pylist()
    return keys


def fragments_of(dataset: LanceDataset) -> list[FragmentMetadata]:
    """What an operation needs to carry each fragment on, in scan order."""
    return [each.metadata for each in dataset.get_fragments()]


def staged(dataset: LanceDataset, *keys: str, value: int = 0) -> list[FragmentMetadata]:
    """Write rows where `dataset` keeps its files. No version changes."""
    fragments: list[FragmentMetadata] = write_fragments(
        rows(*keys, value=value), dataset, mode="append"
    )
    return fragments


def append(dataset: LanceDataset, *keys: str) -> LanceOperation.Append:
    """Stage new rows."""
    return LanceOperation.Append(staged(dataset, *keys))


def delete(dataset: LanceDataset, *keys: str) -> LanceOperation.Delete:
    """Stage the removal of rows."""
    updated, removed = without(dataset, keys)
    return LanceOperation.Delete(
        updated_fragments=updated, deleted_fragment_ids=removed, predicate="by hand"
    )


def upsert(
    dataset: LanceDataset, *keys: str, value: int, inserting: Iterable[str] = ()
) -> LanceOperation.Update:
    """Stage new values for existing rows, which keep their row ids, and some new rows."""
    return mixed(dataset, update=keys, insert=tuple(inserting), value=value)


def mixed(
    dataset: LanceDataset,
    *,
    update: tuple[str, ...] = (),
    insert: tuple[str, ...] = (),
    delete: tuple[str, ...] = (),
    value: int,
) -> LanceOperation.Update:
    """Stage updates, inserts and deletes as one operation."""
    row_ids = {
        each["key"]: each["_rowid"]
        for each in dataset.to_table(columns=["key", "_rowid"]).to_pylist()
    }
    new = staged(dataset, *update, *insert, value=value) if update or insert else []
    if update:
        # Row ids bind to the leading rows, which is why updates are written before inserts.
        kept = RowIdSequence([row_ids[key] for key in update]).to_inline_metadata()
        new = [dataclasses.replace(new[0], row_id_meta=kept), *new[1:]]
    updated, removed = without(dataset, (*update, *delete))
    return LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=updated,
        new_fragments=new,
        fields_modified=[],
        fields_for_preserving_frag_bitmap=[each.id() for each in dataset.lance_schema.fields()],
        update_mode="rewrite_rows",
    )


def without(dataset: LanceDataset, keys: Iterable[str]) -> tuple[list[FragmentMetadata], list[int]]:
    """The fragments left when `keys` are gone, and the ids of those with nothing left."""
    wanted = set(keys)
    offsets: dict[int, list[int]] = {}
    for each in dataset.to_table(columns=["key", "_rowaddr"]).to_pylist():
        if each["key"] in wanted:
            fragment_id, offset = divmod(each["_rowaddr"], 1 << OFFSET_BITS)
            offsets.setdefault(fragment_id, []).append(offset)
    updated: list[FragmentMetadata] = []
    removed: list[int] = []
    for fragment_id, doomed in offsets.items():
        fragment = dataset.get_fragment(fragment_id)
        assert fragment is not None
        left = fragment.delete_rows(doomed)
        if left is None:
            removed.append(fragment_id)
        else:
            updated.append(left)
    return updated, removed


def overwrite(dataset: LanceDataset, *keys: str) -> LanceOperation.Overwrite:
    """Stage a whole new content."""
    return LanceOperation.Overwrite(SCHEMA, staged(dataset, *keys))


def add_column(dataset: LanceDataset, name: str = "extra") -> LanceOperation.Merge:
    """Stage an all-null column."""
    # Numbers the fields from 0 again, which is right only where no column was ever dropped.
    schema = LanceSchema.from_pyarrow(dataset.schema.append(pa.field(name, pa.int64())))
    return LanceOperation.Merge(fragments_of(dataset), schema, preserves_nullability=True)


def keep_columns(dataset: LanceDataset) -> LanceOperation.Project:
    """Replace the list of columns, here by itself."""
    return LanceOperation.Project(dataset.lance_schema)


def index(dataset: LanceDataset, column: str = "key", **options: Any) -> Any:
    """Stage a BTREE over every fragment."""
    options.setdefault("fragment_ids", [each.fragment_id for each in dataset.get_fragments()])
    return dataset.create_index_uncommitted(column, "BTREE", name=f"{column}_index", **options)


def create_index(dataset: LanceDataset) -> LanceOperation.CreateIndex:
    """Stage an index on the key."""
    return LanceOperation.CreateIndex(new_indices=[index(dataset)], removed_indices=[])


def update_config(_dataset: LanceDataset) -> LanceOperation.UpdateConfig:
    """Stage a change of the table's config."""
    changes = LanceOperation.UpdateMap({"setting": "on"})
    return LanceOperation.UpdateConfig(config_updates=changes)


def restore(dataset: LanceDataset) -> LanceOperation.Restore:
    """Stage a return to the version `dataset` is at."""
    return LanceOperation.Restore(dataset.version)


OPERATIONS: Final[Mapping[str, Callable[[LanceDataset], LanceOperation.BaseOperation]]] = {
    "append": lambda dataset: append(dataset, "new"),
    "delete": lambda dataset: delete(dataset, "a"),
    "update": lambda dataset: upsert(dataset, "a", value=1),
    "merge": add_column,
    "config": update_config,
    "index": create_index,
    "overwrite": lambda dataset: overwrite(dataset, "whole"),
    "restore": restore,
}


def committed_segments(dataset: LanceDataset) -> list[Index]:
    """The segments of the one index of a table, made of nothing but their descriptions."""
    [described] = dataset.describe_indices()
    return [
        Index(
            uuid=segment.uuid,
            name=described.name,
            fields=list(described.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
            created_at=segment.created_at,
            base_id=segment.base_id,
            index_details=(described.type_url, b""),
        )
        for segment in described.segments
    ]
