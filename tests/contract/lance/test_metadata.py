"""Where a format stamp may live, and which commits carry it."""

from collections.abc import Mapping
from typing import Final

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError

from tests.contract.lance.builders import (
    SCHEMA,
    append,
    commit,
    create,
    fragments_of,
    keys_of,
    mixed,
    overwrite,
)

STAMP: Final = b"omnigraph:internal_schema_version"
PRIMARY_KEY: Final = {b"lance-schema:unenforced-primary-key": b"true"}
ANNOTATED: Final = SCHEMA.set(0, SCHEMA.field("key").with_metadata(PRIMARY_KEY))


def stamped(version: int) -> pa.Schema:
    return SCHEMA.with_metadata({STAMP: str(version).encode()})


def stamp_of(dataset: LanceDataset) -> bytes | None:
    return (dataset.schema.metadata or {}).get(STAMP)


def key_metadata(dataset: LanceDataset) -> Mapping[bytes, bytes] | None:
    metadata: Mapping[bytes, bytes] | None = dataset.schema.field("key").metadata
    return metadata


def test_the_schemas_metadata_is_stored_at_creation(anywhere):
    create(anywhere, "a", schema=stamped(4))

    assert stamp_of(lance.dataset(anywhere)) == b"4"


def test_an_overwrite_changes_rows_and_stamp_in_one_version(anywhere):
    base = create(anywhere, "a", schema=stamped(3))
    fragments = overwrite(base, "b").fragments

    commit(base, LanceOperation.Overwrite(stamped(4), fragments))

    landed = lance.dataset(anywhere)
    assert (landed.version, keys_of(landed), stamp_of(landed)) == (2, ["b"], b"4")


def test_a_refused_overwrite_leaves_the_stamp(uri):
    base = create(uri, "a", schema=stamped(3))
    commit(base, append(base, "b"))

    with pytest.raises(CommitConflictError):
        commit(base, LanceOperation.Overwrite(stamped(4), fragments_of(base)))
    assert stamp_of(lance.dataset(uri)) == b"3"


def test_an_overwrite_whose_schema_has_no_stamp_removes_it(uri):
    base = create(uri, "a", schema=stamped(4))

    assert stamp_of(commit(base, LanceOperation.Overwrite(SCHEMA, fragments_of(base)))) is None


def test_an_overwrite_with_the_tables_own_lance_schema_keeps_the_stamp(uri):
    base = create(uri, "a", schema=stamped(4))

    landed = commit(base, LanceOperation.Overwrite(base.lance_schema, fragments_of(base)))

    assert stamp_of(landed) == b"4"


def test_an_older_version_keeps_its_own_stamp(uri):
    base = create(uri, "a", schema=stamped(3))
    landed = commit(base, LanceOperation.Overwrite(stamped(4), fragments_of(base)))

    assert stamp_of(landed.checkout_version(1)) == b"3"


def test_appends_and_upserts_keep_the_stamp(uri):
    base = create(uri, "a", schema=stamped(4))
    landed = commit(base, append(base, "b"))
    landed = commit(landed, mixed(landed, update=("a",), delete=("b",), value=1))

    assert stamp_of(landed) == b"4"


def test_a_branch_inherits_the_stamp(anywhere):
    create(anywhere, "a", schema=stamped(4)).create_branch("draft", 1)

    assert stamp_of(lance.dataset(anywhere).checkout_version(("draft", None))) == b"4"


def test_stamping_a_branch_leaves_main(anywhere):
    branch = create(anywhere, "a", schema=stamped(3)).create_branch("draft", 1)
    commit(branch, LanceOperation.Overwrite(stamped(4), fragments_of(branch)))

    assert stamp_of(lance.dataset(anywhere)) == b"3"
    assert stamp_of(lance.dataset(anywhere).checkout_version(("draft", None))) == b"4"


def test_a_restore_brings_the_old_stamp_back(uri):
    base = create(uri, "a", schema=stamped(3))
    landed = commit(base, LanceOperation.Overwrite(stamped(4), fragments_of(base)))

    assert stamp_of(commit(landed, LanceOperation.Restore(1))) == b"3"


def test_updating_schema_metadata_is_a_commit_of_its_own(uri):
    base = create(uri, "a", schema=stamped(3))

    base.update_schema_metadata({STAMP.decode(): "4"})

    assert (base.version, stamp_of(lance.dataset(uri))) == (2, b"4")


def test_updating_the_config_is_a_commit_of_its_own(uri):
    base = create(uri, "a")

    base.update_config({"setting": "on"})

    assert (base.version, lance.dataset(uri).config()) == (2, {"setting": "on"})


def test_updating_table_metadata_is_a_commit_of_its_own(uri):
    base = create(uri, "a")

    base.update_metadata({"note": "x"})

    assert (base.version, lance.dataset(uri).metadata) == (2, {"note": "x"})


def test_config_and_table_metadata_survive_an_overwrite(uri):
    base = create(uri, "a")
    base.update_config({"setting": "on"})
    base.update_metadata({"note": "x"})

    landed = commit(base, overwrite(base, "b"))

    assert (landed.config(), landed.metadata) == ({"setting": "on"}, {"note": "x"})


def test_a_branch_inherits_config_and_table_metadata(uri):
    base = create(uri, "a")
    base.update_config({"setting": "on"})
    base.update_metadata({"note": "x"})

    branch = base.create_branch("draft", base.version)

    assert (branch.config(), branch.metadata) == ({"setting": "on"}, {"note": "x"})


def test_one_staged_operation_may_change_config_and_both_kinds_of_metadata(uri):
    base = create(uri, "a")
    operation = LanceOperation.UpdateConfig(
        config_updates=LanceOperation.UpdateMap({"setting": "on"}),
        table_metadata_updates=LanceOperation.UpdateMap({"note": "x"}),
        schema_metadata_updates=LanceOperation.UpdateMap({STAMP.decode(): "4"}),
    )

    landed = commit(base, operation)

    assert (landed.config(), landed.metadata) == ({"setting": "on"}, {"note": "x"})
    assert stamp_of(landed) == b"4"


def test_a_primary_key_annotation_survives_an_overwrite_that_has_it(uri):
    base = create(uri, "a", schema=ANNOTATED)

    landed = commit(base, LanceOperation.Overwrite(ANNOTATED, fragments_of(base)))

    assert key_metadata(landed) == PRIMARY_KEY


def test_an_overwrite_may_add_a_primary_key_annotation(anywhere):
    base = create(anywhere, "a")

    commit(base, LanceOperation.Overwrite(ANNOTATED, fragments_of(base)))

    landed = lance.dataset(anywhere)
    assert (key_metadata(landed), keys_of(landed)) == (PRIMARY_KEY, ["a"])


def test_an_overwrite_without_the_annotation_removes_it(uri):
    base = create(uri, "a", schema=ANNOTATED)

    assert not key_metadata(commit(base, LanceOperation.Overwrite(SCHEMA, fragments_of(base))))


def test_the_summary_of_a_version_reads_nothing_and_counts_its_files(uri):
    base = commit(create(uri, "a"), append(lance.dataset(uri), "b"))
    base.io_stats_incremental()

    summary = base.get_version()["metadata"]
    assert base.io_stats_incremental().read_iops == 0
    files = [file for fragment in fragments_of(base) for file in fragment.files]
    assert int(summary["total_files_size"]) == sum(file.file_size_bytes or 0 for file in files)


def test_a_branch_made_again_has_versions_of_another_time(uri):
    main = create(uri, "a")
    first = main.create_branch("draft", 1)
    first = commit(first, append(first, "b"))
    seen = lance.dataset(uri).checkout_version(("draft", 2))
    assert seen.get_version() == first.get_version()
    main.branches.delete("draft")
    again = main.create_branch("draft", 1)
    again = commit(again, append(again, "b"))

    assert again.version == first.version
    assert again.get_version() != first.get_version()
