"""Storage stages: whoever writes data moves no head, and whoever moves a head writes no data."""

import ast
from collections.abc import Callable
from typing import Final

import pytest
from lance import LanceDataset, LanceFragment

from tests.support.sources import Source, calls, every_source


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Every method of Lance's dataset, by what it does. A new release that adds one fails the test below
# until somebody has read what it does and put it here.
MOVES: Final = words(
    """
    add_bases add_columns alter_columns cleanup_old_versions commit commit_batch
    commit_existing_index_segments create_branch create_index create_scalar_index deep_clone delete
    delete_config_keys drop drop_columns drop_index initialize_mem_wal insert mem_wal_writer merge
    merge_index_metadata merge_insert migrate_manifest_paths_v2 optimize replace_field_metadata
    replace_schema replace_schema_metadata restore shallow_clone truncate_table update update_config
    update_field_metadata update_metadata update_schema_metadata
    """
)
STAGES: Final = frozenset(["create_index_uncommitted", "merge_existing_index_segments"])
READS: Final = words(
    """
    all_files base_paths branches centroids checkout_latest checkout_version config count_rows
    data_storage_version delta describe_indices explain_cleanup_old_versions filter fragment_ids
    from_pydantic_model get_fragment get_fragments get_ivf_model get_transactions get_version
    has_index has_stable_row_ids head index_statistics initial_storage_options io_stats_incremental
    io_stats_snapshot join join_asof lance_schema latest_storage_options latest_version list_indices
    max_field_id mem_wal_index_details metadata new_file_session partition_expression prewarm_index
    read_blob_ranges read_blobs read_transaction remap_row_addrs sample scanner schema
    schema_metadata session slice sort_by sql stats storage_options_accessor tags take take_blobs
    to_batches to_pandas to_table tracked_files uri validate version version_refs versions
    """
)
# Heads also move by these, which are not methods of a dataset.
ELSEWHERE: Final = frozenset(["write_dataset", "execute", "compact_files", "optimize_indices"])
FRAGMENT_WRITES: Final = words(
    """
    create create_from_file delete delete_rows merge merge_columns update_columns
    """
)
WRITES_DATA: Final = (
    STAGES
    | (FRAGMENT_WRITES - {"create", "delete", "merge"})
    | words(
        """
        write_fragments write_dataset write_files write_table execute_uncommitted stage_append
        stage_change stage_create stage_delete stage_indexes stage_overwrite stage_reshape
        stage_reshaped_rows stage_upsert write_column_file delete_rows put put_if_absent open write
        write_bytes write_text
        """
    )
)
# Names that others use for harmless things; allowed on these receivers only.
HARMLESS: Final = frozenset(
    [
        "obstore.delete",
        "self._objects.delete",
        "self._objects.update",
        "self._tables.open",
        "self._tables.open_latest",
    ]
)
MAY_MOVE: Final = {
    # A plan of a table in memory gives the options of a task, which only writes files.
    "storage/compaction.py": frozenset(["lance.write_dataset", "_make_task.execute"]),
    "storage/heads.py": frozenset(["LanceDataset.commit"]),
    # A ref starts by a commit to a folder of its own, where there is no head yet.
    "storage/refs.py": frozenset(
        ["LanceDataset.commit", "own.create_branch", "own.branches.delete"]
    ),
    # A version is described once more in a scratch folder, which nothing else knows.
    "storage/originals.py": frozenset(["LanceDataset.commit"]),
}


def moves(source: Source) -> list[str]:
    """The calls in a module of storage that move a head and may not."""
    allowed = HARMLESS | MAY_MOVE.get(source.path, frozenset())
    return [
        f"{name}() in line {call.lineno}"
        for name, call in calls(source.tree)
        if name.rpartition(".")[2] in MOVES | ELSEWHERE and name not in allowed
    ]


def data_writes(source: Source) -> list[str]:
    """The calls in a module that write data files or objects."""
    return [
        f"{name}() in line {call.lineno}"
        for name, call in calls(source.tree)
        if name.rpartition(".")[2] in WRITES_DATA and name not in HARMLESS
    ]


def evasions(source: Source) -> list[str]:
    """Where a method of Lance is named without being called at once, or looked up by its name."""
    called = {id(call.func) for _, call in calls(source.tree)}
    found = [
        f"{node.attr} in line {node.lineno}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in MOVES - {"merge", "update", "drop"}
        if id(node) not in called and not _is_property_of(node, source)
    ]
    named = [
        f"getattr in line {call.lineno}" for name, call in calls(source.tree) if name == "getattr"
    ]
    return found + named


def _is_property_of(node: ast.Attribute, source: Source) -> bool:
    return any(
        isinstance(outer, ast.Attribute) and outer.value is node for outer in ast.walk(source.tree)
    )


def storage() -> list[Source]:
    return [each for each in every_source() if each.path.startswith("storage/")]


def named(path: str) -> Source:
    [source] = [each for each in storage() if each.path == path]
    return source


def test_every_method_of_a_dataset_is_known_to_read_to_stage_or_to_move():
    known = [MOVES, STAGES, READS]
    public = {each for each in dir(LanceDataset) if not each.startswith("_")}

    assert public - frozenset().union(*known) == set()
    assert sum(map(len, known)) == len(frozenset().union(*known))


def test_every_method_of_a_fragment_that_writes_is_known():
    reads = words(
        """
        count_rows data_files deletion_file fragment_id head metadata num_deletions open_session
        partition_expression physical_rows physical_schema scanner schema take to_batches to_pandas
        to_table validate
        """
    )
    public = {each for each in dir(LanceFragment) if not each.startswith("_")}

    assert public - reads == FRAGMENT_WRITES


def test_only_heads_and_refs_move_a_head():
    found = {each.path: moves(each) for each in storage()}

    assert {path: where for path, where in found.items() if where} == {}


def test_heads_move_and_do_nothing_else():
    assert data_writes(named("storage/heads.py")) == []


def test_refs_write_no_data():
    assert data_writes(named("storage/refs.py")) == []


def test_no_method_of_lance_is_passed_around_out_of_sight():
    found = {each.path: evasions(each) for each in storage()}

    assert {path: where for path, where in found.items() if where} == {}


def test_heads_are_really_moved_where_we_say():
    for path, expected in MAY_MOVE.items():
        assert expected <= {name for name, _ in calls(named(path).tree)}


@pytest.mark.parametrize(
    "text",
    [
        "LanceDataset.commit(base, operation)",
        "lance.LanceDataset.commit(base, operation)",
        "LanceDataset.commit_batch([])",
        "lance.write_dataset(rows, uri)",
        "write_dataset(rows, uri)",
        "table.handle.insert(rows)",
        "table.handle.delete('true')",
        "dataset.update({'a': '1'})",
        "dataset.merge_insert('id').when_matched_update_all().execute(rows)",
        "handle.create_scalar_index('id', 'BTREE')",
        "handle.create_index('id', 'IVF_PQ')",
        "handle.restore()",
        "handle.add_columns({'a': '1'})",
        "handle.drop_columns(['a'])",
        "handle.alter_columns({})",
        "handle.merge(rows, 'id')",
        "handle.optimize.compact_files()",
        "handle.optimize.optimize_indices()",
        "Compaction.commit(handle, [])",
        "Compaction.execute(handle)",
        "handle.replace_schema_metadata({})",
        "handle.update_config({})",
        "handle.create_branch('a')",
        "handle.branches.delete('a')",
        "handle.cleanup_old_versions()",
        "table.handle.truncate_table()",
        "def f():\n    async def g():\n        return [x.commit(1) for x in y]",
        "tables.main(location).create_branch(name, 1)",
    ],
)
def test_the_check_of_moves_can_fail(text):
    assert moves(Source.parse("storage/staging.py", text)) != []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("storage/heads.py", "handle.restore()"),
        ("storage/heads.py", "other.commit(base, operation)"),
        ("storage/refs.py", "other.commit(base, operation)"),
        ("storage/refs.py", "own.delete('true')"),
    ],
)
def test_heads_and_refs_may_move_only_in_their_own_way(path, text):
    assert moves(Source.parse(path, text)) != []


@pytest.mark.parametrize(
    "text",
    [
        "write_fragments(rows, base)",
        "lance.fragment.write_fragments(rows, base)",
        "staging.write_files(table, rows)",
        "staging.stage_append(table, rows)",
        "fragment.delete_rows([1])",
        "fragment.merge_columns(fill)",
        "handle.create_index_uncommitted('id', 'BTREE')",
        "builder.execute_uncommitted(rows)",
        "obstore.put(store, path, data)",
        "objects.put_if_absent(path, data)",
        "Path('a').write_bytes(b'')",
        "open('a', 'w')",
    ],
)
def test_the_check_of_data_writes_can_fail(text):
    assert data_writes(Source.parse("storage/heads.py", text)) != []


@pytest.mark.parametrize(
    "text",
    ["move = LanceDataset.commit", "run(handle.restore)", "getattr(handle, 'com' + 'mit')(base)"],
)
def test_the_check_of_evasions_can_fail(text):
    assert evasions(Source.parse("storage/staging.py", text)) != []


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (moves, "obstore.delete(self._store, path)"),
        (moves, "fragment.delete_rows([1])"),
        (moves, "handle.create_index_uncommitted('id', 'BTREE')"),
        (data_writes, "LanceDataset.commit(base, operation)"),
        (evasions, "table.handle.scanner(columns=None)"),
    ],
)
def test_the_checks_let_pass_what_is_allowed(check: Callable[[Source], list[str]], text):
    assert check(Source.parse("storage/staging.py", text)) == []
