"""The messages that we write ourselves are those that Lance writes and reads."""

from __future__ import annotations

import json

import numpy as np
import pytest
from lance import LanceDataset
from lance.fragment import RowIdMeta, RowIdSequence
from lance.optimize import Compaction
from lance.schema import LanceSchema

from omnigraph.storage.lance_messages import (
    encode_row_id_ranges,
    encode_row_versions,
    fragment_id_max,
    read_fields,
    serialized_manifest,
    with_base_paths,
    with_fields,
)
from tests.contract.lance.builders import append, commit, create


@pytest.fixture
def grown(anywhere: str) -> LanceDataset:
    """Four fragments, each with its own row version."""
    dataset = create(anywhere)
    for key in "abcd":
        dataset = commit(dataset, append(dataset, key))
    return dataset


def test_the_fields_of_a_schema_have_the_numbers_that_lance_knows(grown):
    fields = read_fields(grown.lance_schema)
    assert [(each.name, each.id) for each in fields] == [
        (field.name(), field.id()) for field in grown.lance_schema.fields()
    ]
    again = [each.renumbered(each.id + 7, parent=each.parent) for each in fields]
    made = with_fields(grown.lance_schema, again)
    assert isinstance(made, LanceSchema)
    assert [field.id() for field in made.fields()] == [each.id + 7 for each in fields]


def test_the_manifest_of_a_handle_has_the_highest_fragment_number(grown):
    assert fragment_id_max(serialized_manifest(grown)) == max(grown.fragment_ids())


def test_a_manifest_is_written_as_it_was_read_and_base_paths_are_replaced(grown):
    manifest = serialized_manifest(grown)
    assert with_base_paths(manifest, lambda path: path) == manifest
    branch = grown.create_branch("draft", grown.version)
    [base] = branch.base_paths().values()
    moved = with_base_paths(serialized_manifest(branch), lambda path: f"{path}/moved")
    opened = LanceDataset(branch.uri, serialized_manifest=moved)
    assert [each.path for each in opened.base_paths().values()] == [f"{base.path}/moved"]


def test_row_versions_are_encoded_as_lance_encodes_them(grown):
    [task] = Compaction.plan(grown, options={"target_rows_per_fragment": 100}).tasks
    [written] = task.execute(grown).new_fragments
    versions = grown.to_table(columns=["_row_last_updated_at_version"]).column(0).to_pylist()
    meta = written.last_updated_at_version_meta
    assert meta is not None
    assert encode_row_versions([(1, version) for version in versions]) == json.loads(meta.json())


def test_ranges_of_row_ids_are_read_by_lance():
    encoded = encode_row_id_ranges(np.array([3, 900, 0]), np.array([5, 903, 1]))
    meta = RowIdMeta.from_json(encoded)  # type: ignore[misc, call-arg]
    sequence = RowIdSequence.from_inline_metadata(meta)
    assert sequence.to_pyarrow().to_pylist() == [3, 4, 900, 901, 902, 0]
